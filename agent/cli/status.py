"""`agent status`: how far a study is, once or for as long as somebody looks on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument

if TYPE_CHECKING:
    from agent.home import Home
    from agent.reading import Reading
    from agent.saved import Saved

LOOK_EVERY_S = 2.0


@click.command(epilog="Example: agent status --watch")
@study_argument
@click.option("--watch", is_flag=True, help="Look again every two seconds, until the study is left or Ctrl-C.")
@json_option
@storage_option
@home_option
def command(study: str | None, watch: bool, as_json: bool, storage: str | None, home: str | None) -> None:
    """Show how far STUDY (by default the last one) is, and whether an agent is at work on it."""
    from agent.cli.screen import make_console, print_indented
    from agent.home import Home
    from agent.reading import read_study

    place = Home.find(home)
    if watch and as_json:
        raise click.UsageError("--watch is for people: take --json without it, as often as you like")
    if watch:
        _watch(place, study, storage)
        return
    reading = read_study(place, study, storage)
    if as_json:
        click.echo(json.dumps(_content(reading)))
        return
    console = make_console()
    head, *lines = _lines(reading)
    console.print(head, style="bold")
    for line in lines:
        print_indented(console, line)


def _watch(home: Home, study: str | None, storage: str | None) -> None:
    """Redraw on a terminal; elsewhere print what has changed."""
    from rich.live import Live
    from rich.text import Text

    from agent.cli.screen import make_console
    from agent.reading import read_study
    from agent.recovery import owner_of

    console, shown = make_console(), [""]
    with Live(console=console, auto_refresh=False) as live:
        while True:
            reading = read_study(home, study, storage)
            lines = list(_lines(reading))
            if console.is_terminal:
                live.update(Text("\n  ".join(lines)), refresh=True)
            elif lines[:2] != shown:
                console.print("\n  ".join(lines[:2]), soft_wrap=True)
            shown = lines[:2]
            if owner_of(reading.store) is None:
                return
            time.sleep(LOOK_EVERY_S)


def _lines(reading: Reading) -> Iterator[str]:
    from agent.cluster_study import node_lines
    from agent.deadends.observation import trial_label
    from agent.progress import phase_now, time_left, typical_phase_s
    from agent.recovery import owner_of
    from agent.report import headline

    summary, history, owner = reading.summary, reading.history, owner_of(reading.store)
    is_spent = summary.spent >= summary.budget
    yield f"{summary.study}: {f'being run by {owner}' if owner else 'done' if is_spent else 'open'}"
    yield from headline(summary)
    yield f"dead ends: {len(summary.atlas.confirmed)} confirmed, {len(summary.atlas.dead_ends)} in all"
    typical = typical_phase_s(history.trials)
    for trial in (*history.trials, *history.probes):
        if owner and not trial.is_closed:
            phase = phase_now(trial, typical, time.time())
            yield f"in flight: {trial_label(trial)} {phase or ''} {summary.changes(trial.work.resolved)}"
    yield from node_lines(reading.store)
    if owner and (left := time_left(history.trials, history.budget - history.earlier)):
        yield left
    if not owner and not is_spent:
        yield f"go on with: {reading.again}"
        if reading.missing:
            yield f"first: {reading.missing}"


def _saved(saved: Saved) -> dict[str, object]:
    return {
        "map_s": saved.map_s,
        "ladder_s": saved.ladder_s,
        "early_s": saved.early_s,
        "ruled_out": dict(saved.ruled_out),
        "rungs": {each.rung.value: {k: v for k, v in asdict(each).items() if k != "rung"} for each in saved.ladder},
    }


def _content(reading: Reading) -> dict[str, object]:
    from agent.cluster_study import stored_nodes
    from agent.progress import time_left_s
    from agent.recovery import owner_of

    summary, history = reading.summary, reading.history
    left = time_left_s(history.trials, history.budget - history.earlier)
    return {
        "study": summary.study,
        "modelled": summary.modelled or None,
        "simulated_acceptance": summary.simulated_acceptance,
        "budget": summary.budget,
        "spent": summary.spent,
        "outcomes": dict(summary.outcomes),
        "probes": summary.num_probes,
        "running": [trial.number for trial in history.trials if not trial.is_closed],
        "owner": owner_of(reading.store),
        "nodes": [asdict(node) for node in stored_nodes(reading.store)],
        "dead_ends": len(summary.atlas.confirmed),
        "node_s": summary.node_s,
        "saved_s": summary.saved_s,
        "saved": _saved(summary.saved),
        "left_s": list(left) if left else None,
        "rungs": {rung.value: asdict(cost) for rung, cost in summary.rungs.items()},
        "contradictions": [each.model_dump(mode="json") for each in summary.contradictions],
    }
