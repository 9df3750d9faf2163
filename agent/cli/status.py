"""`agent status`: how far a study is."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument


@click.command()
@study_argument
@json_option
@storage_option
@home_option
def command(study: str | None, as_json: bool, storage: str | None, home: str | None) -> None:
    """Show how far STUDY (by default the last one) is, and whether an agent is at work on it."""
    from agent.cli.screen import make_console, print_indented
    from agent.home import Home
    from agent.reading import read_study
    from agent.recovery import owner_of
    from agent.report import headline

    reading = read_study(Home.find(home), study, storage)
    summary, owner = reading.summary, owner_of(reading.store)
    running = [trial.number for trial in reading.history.trials if not trial.is_closed]
    if as_json:
        content = {
            "study": summary.study,
            "modelled": summary.modelled or None,
            "simulated_acceptance": summary.simulated_acceptance,
            "budget": summary.budget,
            "spent": summary.spent,
            "outcomes": dict(summary.outcomes),
            "probes": summary.num_probes,
            "running": running,
            "owner": owner,
            "dead_ends": len(summary.atlas.confirmed),
            "node_s": summary.node_s,
            "rungs": {rung.value: asdict(cost) for rung, cost in summary.rungs.items()},
            "contradictions": [each.model_dump(mode="json") for each in summary.contradictions],
        }
        click.echo(json.dumps(content))
        return
    console = make_console()
    state = f"being run by {owner}" if owner else "done" if summary.spent >= summary.budget else "open"
    console.print(f"{summary.study}: {state}", style="bold")
    for line in headline(summary):
        print_indented(console, line)
    if not owner and summary.spent < summary.budget:
        console.print(f"  go on with: agent resume {summary.study}")
