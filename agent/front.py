"""Several goals: the assignments of which no other one is better in all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from agent.goals import Goal
from agent.store.trial import Trial
from runners import Measurement
from runners.goodput import EACH, Limit


def mean_figures(trials: Sequence[Trial]) -> tuple[float, ...]:
    """Return the mean of each goal's figure over the launches of an assignment, geometric, in the goal's unit."""
    rows = [trial.outcome.figures.values() for trial in trials if trial.outcome is not None and trial.outcome.figures]
    return tuple(math.exp(math.fsum(map(math.log, column)) / len(column)) for column in zip(*rows, strict=True))


def front(figures: Mapping[str, Sequence[float]], goals: Sequence[Goal]) -> list[str]:
    """Return the keys of the rows that no other row dominates, in the order of the first goal, best first.

    A row dominates another one that is worse in some goal and better in none.
    """
    merits = {
        key: tuple(goal.merit(figure) for goal, figure in zip(goals, row, strict=True)) for key, row in figures.items()
    }
    kept = [key for key, row in merits.items() if not any(_dominates(other, row) for other in merits.values())]
    return sorted(kept, key=lambda key: merits[key], reverse=True)


def violations(measurement: Measurement, limits: Sequence[Limit]) -> dict[str, float]:
    """Return `LIMIT@LEVEL` → how far too few requests are within a limit, as a share; kept where it is not positive."""
    return {
        f"{limit.name}@{level.concurrency}": limit.percentile / EACH - level.goodput.within[limit.name]
        for level in measurement.levels
        if level.goodput is not None
        for limit in limits
    }


def is_feasible(trials: Sequence[Trial], limits: Sequence[Limit]) -> bool:
    """Return whether most launches of an assignment keep all limits."""
    measured = [trial.record.measurement for trial in trials if trial.record is not None and trial.record.measurement]
    kept = sum(all(value <= 0 for value in violations(each, limits).values()) for each in measured)
    return 2 * kept > len(measured)


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(mine >= yours for mine, yours in pairs) and any(mine > yours for mine, yours in pairs)
