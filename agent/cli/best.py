"""`agent best`: the best configuration and the command that repeats it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument

if TYPE_CHECKING:
    from agent.schedule_report import ScheduleCommands
    from agent.summary import Arm, StudySummary

FORMS = ("sh", "env", "yaml", "compose", "k8s", "json")
"""Written down here too, since `--help` must not import what writes them."""


@click.command(epilog="Example: agent best --export sh > serve.sh")
@study_argument
@click.option("--export", "form", type=click.Choice(FORMS), help="Print it as a file to take away, without secrets.")
@click.option("--image", help="Container image for compose and k8s.  [default: the engine makers' own]")
@json_option
@storage_option
@home_option
def command(
    study: str | None, form: str | None, image: str | None, as_json: bool, storage: str | None, home: str | None
) -> None:
    """Show the best configuration of STUDY (by default the last one), its gain, and the command that repeats it."""
    from agent.cli.schedule import print_schedule
    from agent.cli.screen import make_console, print_command, print_indented
    from agent.errors import NothingWorksError
    from agent.home import Home
    from agent.reading import read_study
    from agent.report import about_the_best, headline, reproduce_command
    from agent.schedule_report import schedule_commands

    reading = read_study(Home.find(home), study, storage)
    summary = reading.summary
    if summary.best is None:
        why = "has measured nothing yet"
        if summary.stops_at is not None:
            why = f"stops at the {summary.stops_at.value} rung and launches nothing in full, so that it has no best"
        raise NothingWorksError(f"study {summary.study} {why}")
    if form is not None:
        from agent.export import export, takeaway

        taken = takeaway(summary, summary.best, reading.history.runner, reading.store.manifest, image)
        click.echo(export(taken, form), nl=False)
        return
    line = reproduce_command(reading.history.runner, summary.best.first, reading.store.manifest)
    told, manifest = summary.schedule, reading.store.manifest
    commands = None if told is None else schedule_commands(told, reading.history.runner, manifest)
    if as_json:
        click.echo(json.dumps(_as_json(summary, summary.best, line, commands)))
        return
    console = make_console()
    for text in about_the_best(headline(summary)):
        print_indented(console, text, 0)
    print_command(console, "repeat it with:", line)
    if reading.missing:
        console.print(f"\nnote: it does not run now: {reading.missing}", style="yellow", soft_wrap=True)
    if commands is not None and not summary.modelled:
        print_schedule(commands, console)


def _as_json(summary: StudySummary, best: Arm, line: str, commands: ScheduleCommands | None) -> dict[str, object]:
    from agent.schedule_report import schedule_json

    compared = summary.comparison
    return {
        "study": summary.study,
        "modelled": summary.modelled or None,
        "simulated_acceptance": summary.simulated_acceptance,
        "trials": [trial.number for trial in best.trials],
        "assignment": best.assignment,
        "values": list(best.values),
        "mean": best.mean,
        "unit": "; ".join(goal.unit for goal in summary.goals),
        "front": [
            {
                "trials": [trial.number for trial in found.arm.trials],
                "assignment": found.arm.assignment,
                "figures": dict(zip((goal.name for goal in summary.goals), found.figures, strict=True)),
                "keeps_limits": found.keeps_limits,
            }
            for found in summary.front
        ],
        "baseline": list(summary.baseline.values) if summary.baseline else None,
        "gain": summary.gain,
        "interval": [compared.low, compared.high] if compared else None,
        "verdict": summary.verdict,
        "noise": compared.spread.sd if compared else None,
        "drift": asdict(summary.drift) if summary.drift else None,
        "schedule": schedule_json(summary.schedule, commands) if summary.schedule else None,
        "command": line,
    }
