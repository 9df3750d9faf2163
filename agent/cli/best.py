"""`agent best`: the best configuration and the command that repeats it."""

from __future__ import annotations

import json

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument


@click.command()
@study_argument
@json_option
@storage_option
@home_option
def command(study: str | None, as_json: bool, storage: str | None, home: str | None) -> None:
    """Show the best configuration of STUDY (by default the last one), its gain, and the command that repeats it."""
    from agent.cli.screen import make_console, print_command, print_indented
    from agent.errors import NothingWorksError
    from agent.home import Home
    from agent.reading import read_study
    from agent.report import headline, reproduce_command

    reading = read_study(Home.find(home), study, storage)
    summary = reading.summary
    if summary.best is None:
        raise NothingWorksError(f"study {summary.study} has measured nothing yet")
    line = reproduce_command(reading.history.runner, summary.best.first, reading.store.manifest)
    if as_json:
        content = {
            "study": summary.study,
            "modelled": summary.modelled or None,
            "simulated_acceptance": summary.simulated_acceptance,
            "trials": [trial.number for trial in summary.best.trials],
            "assignment": summary.best.assignment,
            "values": list(summary.best.values),
            "mean": summary.best.mean,
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
            "verdict": summary.verdict,
            "command": line,
        }
        click.echo(json.dumps(content))
        return
    console = make_console()
    for text in headline(summary)[1:]:
        print_indented(console, text, 0)
    print_command(console, "repeat it with:", line)
