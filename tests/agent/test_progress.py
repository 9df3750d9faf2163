"""How far a study is in time."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.outcome import Outcome, OutcomeKind
from agent.progress import phase_now, spoken, time_left, time_left_s, typical_phase_s
from agent.store.trial import Trial
from runners import Phase
from tests.agent.test_summary import trial
from tests.support.simulated_study import START
from tests.support.stores import work


def closed_after(seconds: list[float], **phases: float) -> list[Trial]:
    """Return measured launches whose ends lie so far apart."""
    found, at = [], START
    for number, step in enumerate(seconds):
        at += timedelta(seconds=step)
        one = trial(number, work(), Outcome(kind=OutcomeKind.MEASURED, value=1.0))
        assert one.record is not None
        record = one.record.model_copy(update={"phase_s": {Phase(name): spent for name, spent in phases.items()}})
        found.append(one.model_copy(update={"closed_at": at, "record": record}))
    return found


def test_equal_launches_leave_no_doubt() -> None:
    trials = closed_after([60.0] * 10)
    assert time_left_s(trials, 15) == (300.0, 300.0)
    assert time_left(trials, 15) == "about 5 min left"


def test_unequal_launches_leave_a_range_around_the_mean() -> None:
    found = time_left_s(closed_after([60.0, 50.0, 70.0, 50.0, 70.0]), 25)
    assert found is not None
    assert found[0] < 20 * 60.0 < found[1]


@pytest.mark.parametrize(("seconds", "budget"), [([60.0] * 3, 40), ([60.0] * 10, 10)])
def test_it_says_nothing_too_early_and_nothing_at_the_end(seconds: list[float], budget: int) -> None:
    assert time_left_s(closed_after(seconds), budget) is None
    assert time_left(closed_after(seconds), budget) == ""


def test_a_pause_of_a_day_is_not_what_a_launch_takes() -> None:
    found = time_left_s(closed_after([60.0] * 8 + [86_400.0] + [60.0] * 8), 27)
    assert found is not None
    assert found[1] < 27 * 240.0


@given(st.lists(st.floats(1.0, 1e4), min_size=5, max_size=30), st.integers(1, 100))
def test_the_range_is_in_order_and_not_negative(seconds: list[float], more: int) -> None:
    found = time_left_s(closed_after(seconds), len(seconds) + more)
    assert found is not None
    assert 0.0 <= found[0] <= found[1]


def test_the_phase_of_a_launch_is_told_with_its_usual_time(tmp_path: Path) -> None:
    entries = [{"phase": "spawn", "at": 100.0}, {"phase": "compile", "at": 130.0}]
    (tmp_path / "phases.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    running = trial(0, work(), Outcome(kind=OutcomeKind.MEASURED)).model_copy(update={"artifact_dir": str(tmp_path)})
    typical = typical_phase_s(closed_after([1.0] * 4, compile=20.0))
    assert str(phase_now(running, typical, now=137.0)) == "[compile 7 s of usually 20 s]"


def test_a_launch_on_another_node_shows_no_phase(tmp_path: Path) -> None:
    elsewhere = trial(0, work(), Outcome(kind=OutcomeKind.MEASURED)).model_copy(update={"artifact_dir": str(tmp_path)})
    assert phase_now(elsewhere, {}, now=0.0) is None


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (89.0, "89 s"), (600.0, "10 min"), (9000.0, "2.5 h")])
def test_durations_are_spoken(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
