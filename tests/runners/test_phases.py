"""The phase of a launch only moves forward, and its time counts until the launch is decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runners import Deadlines, LogLine, Phase
from runners.phases import PhaseTracker

PATTERNS = ((r"^load", Phase.LOAD_WEIGHTS), (r"^capture", Phase.CAPTURE_GRAPHS), (r"ready", Phase.READY))


class Clock:
    """A clock that stands still until it is told to move."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tracker(tmp_path: Path, clock: Clock) -> PhaseTracker:
    deadlines = Deadlines(phase_s={Phase.LOAD_WEIGHTS: 300.0}, phase_default_s=10.0)
    return PhaseTracker(tmp_path / "phases.jsonl", PATTERNS, deadlines, clock)


def see(tracker: PhaseTracker, *texts: str) -> None:
    for number, text in enumerate(texts, start=1):
        tracker.see(LogLine(number=number, text=text))


def test_a_phase_never_moves_back(tracker: PhaseTracker) -> None:
    see(tracker, "load", "capture", "load the draft")
    assert tracker.phase is Phase.CAPTURE_GRAPHS


def test_a_line_that_matches_twice_enters_the_later_phase(tracker: PhaseTracker) -> None:
    see(tracker, "load: ready")
    assert tracker.phase is Phase.READY


def test_seconds_are_counted_for_each_phase_until_frozen(tracker: PhaseTracker, clock: Clock) -> None:
    clock.now = 2.0
    see(tracker, "load")
    clock.now = 5.0
    tracker.freeze()
    clock.now = 9.0
    see(tracker, "ready")
    assert tracker.phase_s == {Phase.SPAWN: 2.0, Phase.LOAD_WEIGHTS: 3.0}
    assert tracker.phase is Phase.LOAD_WEIGHTS


def test_each_phase_has_its_own_deadline(tracker: PhaseTracker, clock: Clock) -> None:
    clock.now = 10.5
    assert tracker.is_overdue
    see(tracker, "load")
    assert not tracker.is_overdue
    clock.now = 311.0
    assert tracker.is_overdue


def test_changes_are_written_as_they_happen(tracker: PhaseTracker, tmp_path: Path) -> None:
    see(tracker, "", "load")
    entries = [json.loads(line) for line in (tmp_path / "phases.jsonl").read_text().splitlines()]
    assert [(entry["phase"], entry["line"]) for entry in entries] == [("spawn", None), ("load_weights", 2)]
