"""The living lines of a search: what matters is in sight on a narrow terminal; a file gets closed trials only."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agent.live_view import LiveView
from agent.progress import time_left
from agent.summary import summarise
from search_spaces import load_node
from tests.support.modelled_study import ModelledStudy

NARROW = 80


@pytest.fixture(scope="module")
def study() -> ModelledStudy:
    """Ten launches of twenty on a modelled node."""
    half = ModelledStudy(node=load_node("pcie8-blackwell-cuda128"), budget=10)
    half.run()
    half.budget = 20
    return half


def screen(is_terminal: bool) -> Console:
    """A console that keeps what it shows."""
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=NARROW, color_system=None)


def shown(console: Console) -> str:
    """What it has shown so far."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_narrow_terminal_shows_progress_time_left_baseline_best_and_map(study: ModelledStudy) -> None:
    history, console = study.history(), screen(is_terminal=True)
    with LiveView(console, history, "study").shown():
        lines = [line for line in shown(console).splitlines() if line.strip()]
    summary, left = summarise(history, "study"), time_left(history.trials, 20)
    assert left and summary.best is not None and summary.baseline is not None
    assert all(len(line) <= NARROW for line in lines)
    text = "\n".join(lines)
    for words in ("10/20 launches", left, "modelled node", f"best {summary.best.mean:.1f} tok/s", "baseline "):
        assert words in text
    assert f"dead ends {len(summary.atlas.confirmed)} of {len(summary.atlas.dead_ends)} confirmed" in text


def test_what_is_in_flight_is_named_with_its_rung_and_why(study: ModelledStudy) -> None:
    history, console = study.history(), screen(is_terminal=True)
    running = history.trials[-1].model_copy(update={"closed_at": None, "outcome": None, "artifact_dir": "/nowhere"})
    view = LiveView(console, history, "study")
    with view.shown():
        view.trials_opened([running, running])
    assert f"#{running.number} and 1 more" in shown(console)
    assert "   full " in shown(console)
    assert running.work.stage.split(":")[0] in shown(console)


def test_without_a_terminal_only_closed_trials_are_printed_each_on_its_lines(study: ModelledStudy) -> None:
    history, console = study.history(), screen(is_terminal=False)
    view = LiveView(console, history, "study")
    with view.shown():
        view.tick()
        assert shown(console) == ""
        trial = next(each for each in history.trials if each.is_measured)
        view.trial_closed(trial, history)
    lines = shown(console).splitlines()
    assert lines[0].split()[0] == f"#{trial.number}"
    assert "tok/s" in lines[0]
    assert "\x1b" not in shown(console)
