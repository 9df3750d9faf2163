"""How far a study is in time: the phase a launch is in, how long that usually takes, and when the budget is spent."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent.store.trial import Trial

ENOUGH = 3
"""Launches from which a typical time and its spread are believed."""
SPREAD = 1.645
"""Standard deviations to either side that hold nine of ten sums of many launches."""


@dataclass(frozen=True, slots=True)
class PhaseNow:
    """The phase of a launch in flight."""

    phase: str
    since_s: float
    """Seconds in this phase."""
    typical_s: float | None
    """Median seconds that measured launches of the study spent in it; None before there are enough."""

    def __str__(self) -> str:
        usual = f" of usually {spoken(self.typical_s)}" if self.typical_s is not None else ""
        return f"[{self.phase} {spoken(self.since_s)}{usual}]"


def phase_now(trial: Trial, typical: Mapping[str, float], now: float) -> PhaseNow | None:
    """Return the phase that a trial's runner noted last, or None: a trial on another node notes it there.

    Args:
        trial: A trial in flight.
        typical: Phase → usual seconds (`typical_phase_s`).
        now: The present, in seconds since the epoch.
    """
    try:
        last = json.loads((Path(trial.artifact_dir) / "phases.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        return PhaseNow(str(last["phase"]), max(now - float(last["at"]), 0.0), typical.get(last["phase"]))
    except (OSError, IndexError, ValueError, KeyError):  # not there yet, or being written
        return None


def typical_phase_s(trials: Sequence[Trial]) -> dict[str, float]:
    """Return phase → median seconds that measured launches spent in it."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.is_measured and trial.record is not None:
            for phase, spent in trial.record.phase_s.items():
                seconds[phase.value].append(spent)
    return {phase: statistics.median(spent) for phase, spent in seconds.items() if len(spent) >= ENOUGH}


def time_left_s(trials: Sequence[Trial], budget: int) -> tuple[float, float] | None:
    """Return the least and the most seconds until the budget is spent (nine cases of ten), or None: too early to say.

    What a launch costs is the time from one end to the next, probes and waiting in between included; pauses of the
    study show as outliers and are cut at four times the median.
    """
    ends = sorted(trial.closed_at.timestamp() for trial in trials if trial.counts and trial.closed_at is not None)
    steps = [later - earlier for earlier, later in pairwise(ends)]
    left = budget - len(ends)
    if len(steps) < ENOUGH or left <= 0:
        return None
    most = 4.0 * statistics.median(steps)
    steps = [min(step, most) for step in steps]
    middle = left * statistics.fmean(steps)
    wide = SPREAD * statistics.stdev(steps) * math.sqrt(left + left**2 / len(steps))  # the mean itself is a guess too
    return max(middle - wide, 0.0), middle + wide


def time_left(trials: Sequence[Trial], budget: int) -> str:
    """Return the time left in words, empty where it is too early to say."""
    found = time_left_s(trials, budget)
    if found is None:
        return ""
    least, most = spoken(found[0]), spoken(found[1])
    return f"about {least} left" if least == most else f"{least} to {most} left"


def spoken(seconds: float) -> str:
    """Return a duration as people say it: 42 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
