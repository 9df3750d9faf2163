"""`agent reclassify`: judge what is stored again, after a rule improved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument

if TYPE_CHECKING:
    from agent.reclassify import Reclassified


@click.command(epilog="Example: agent reclassify --rules my-rules.yaml")
@study_argument
@click.option("--rules", metavar="FILE", help="Rules of your own, in the place of the study's; stored with it.")
@json_option
@storage_option
@home_option
def command(study: str | None, rules: str | None, as_json: bool, storage: str | None, home: str | None) -> None:
    """Judge the failures of STUDY (by default the last one) again, from their logs: nothing is launched.

    The map, `agent explain` and the next `agent sync` follow. Running it again changes nothing.
    """
    import json
    import os

    from agent.home import Home
    from agent.reclassify import reclassify
    from agent.recovery import give_up_ownership, take_ownership
    from agent.studies import open_study
    from agent.study_rules import rules_of, rules_of_file, store_rules

    own_rules = rules_of_file(rules) if rules else None
    store, _ = open_study(Home.find(home), study, storage)
    lease = take_ownership(store)
    try:
        if own_rules is not None:
            store_rules(store, own_rules)
        found = reclassify(store, rules_of(store), os.environ)
    finally:
        give_up_ownership(store, lease)
    if as_json:
        click.echo(json.dumps(_content(found), indent=2))
        return
    for change in found.changes:
        before, after = change.before, change.after
        click.echo(
            f"{change.label}: {before.reason.value} ({before.rule}) → {after.reason.value} ({after.rule})"
            + (f", blames {', '.join(after.blames)}" if after.blames else "")
        )
    gone = f"; {len(found.without_log)} keep their verdict, since their logs are gone" if found.without_log else ""
    click.echo(f"{store.name}: {found.judged} failures judged again, {len(found.changes)} differ{gone}")
    if found.changes:
        click.echo("the map has changed with them (agent deadends); MLflow follows with: agent sync")


def _content(found: Reclassified) -> dict[str, object]:
    return {
        "judged": found.judged,
        "without_log": list(found.without_log),
        "changes": [
            {
                "trial": change.label,
                "before": change.before.model_dump(mode="json"),
                "after": change.after.model_dump(mode="json"),
            }
            for change in found.changes
        ],
    }
