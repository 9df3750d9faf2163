"""What each measured launch is worth to the search: its value, or one figure of several goals."""

from __future__ import annotations

from collections.abc import Sequence

from agent.front import violations
from agent.propose.scalarise import scalars, weights_of
from agent.settings import StudySettings
from agent.store.trial import Trial


def objectives(trials: Sequence[Trial], settings: StudySettings, index: int | None) -> list[float]:
    """Return one positive figure for each measured trial, of which more is better.

    Args:
        trials: Measured launches.
        settings: Those of their study.
        index: Number of the launch that is to be proposed: several goals are weighed anew for each. None: all alike.
    """
    goals = settings.goals
    values = [trial.outcome.value for trial in trials if trial.outcome is not None and trial.outcome.value]
    if len(goals) == 1:
        return values
    if index is None:
        return [value * _kept(trial, settings) for trial, value in zip(trials, values, strict=True)]
    rows = [
        [goal.merit(trial.outcome.figures[goal.name]) for goal in goals]
        for trial in trials
        if trial.outcome is not None
    ]
    found = scalars(rows, weights_of(len(goals), settings.seed, index))
    return [value * _kept(trial, settings) for trial, value in zip(trials, found, strict=True)]


def _kept(trial: Trial, settings: StudySettings) -> float:
    """Return a factor below 1 for a launch that breaks limits: the search is to find the front of those that do not."""
    measurement = trial.record.measurement if trial.record is not None else None
    if measurement is None or not settings.workload.slo:
        return 1.0
    worst = max(violations(measurement, settings.workload.slo).values(), default=0.0)
    return 1.0 - max(0.0, min(worst, 0.99))
