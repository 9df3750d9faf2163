"""`agent try`: launch exactly this next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.options import home_option, storage_option

if TYPE_CHECKING:
    from agent.propose.history import History
    from agent.store.trial import Work
    from search_spaces import Assignment


@click.command(name="try", epilog="Example: agent try nccl_algo=allreduce:tree cuda_graph_max_bs=64")
@click.argument("values", nargs=-1, required=True, metavar="NAME=VALUE…")
@click.option("--study", help="Study.  [default: the last one]")
@storage_option
@home_option
def command(values: tuple[str, ...], study: str | None, storage: str | None, home: str | None) -> None:
    """Queue an assignment: the best known one with NAME=VALUE…, to be launched before anything else.

    A running agent takes it next; otherwise `agent resume` does. The budget grows where it does not reach for all that
    is queued.
    """
    from agent.errors import UsageError
    from agent.home import Home
    from agent.reading import read_study
    from agent.store.study_store import ASKED, BUDGET

    reading = read_study(Home.find(home), study, storage)
    history, store = reading.history, reading.store
    changes = {}
    for text in values:
        name, separator, value = text.partition("=")
        if not separator:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as draft_length=3")
        changes[name] = history.space.parse_value(name, value)
    wanted = history.space.normalise({**(history.incumbent or history.default), **changes}, history.facts)
    history.space.check(wanted)
    if _launch(history, wanted) is None:
        why = next(iter(history.ruled_out))
        found = history.atlas.find(why)
        if found is not None:
            why = f"it lies in dead end {found.id} ({found}: {found.reason.value}); `agent deadends --all` says more"
        raise UsageError(f"it would not be launched: {why}")
    queue = [*history.asked, wanted]
    store.set_attribute(ASKED, [dict(each) for each in queue])
    waiting = {work.identity for each in queue if (work := _launch(history, each)) is not None}
    if history.spent + len(waiting) > history.budget:
        store.set_attribute(BUDGET, history.spent + len(waiting))
    click.echo(f"queued for {store.name}: " + " ".join(values))
    click.echo(f"a running agent launches it next; otherwise: {reading.again}")


def _launch(history: History, asked: Assignment) -> Work | None:
    """Return the launch that a queued assignment comes to, or None: it has run, runs, or is ruled out by now."""
    from agent.store.trial import Kind

    return history.admit(asked, Kind.SEARCH, "asked for by the user", may_unlock=True)
