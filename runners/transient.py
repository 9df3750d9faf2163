"""Where a series settles: how much of its beginning is a warm-up that says nothing about the rest."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

BATCH = 5
"""Values averaged before the rule is applied, as MSER-5 has it; shorter series are averaged less."""
LEAST = 20
"""Values below which a beginning cannot be told from chance."""
NEARLY = 3.0
"""A cut is as good as the best one up to this factor of its squared error: chance often moves the best one on."""
SLOWER, ERRORS = 1.1, 3.0
"""The beginning is dropped only if its mean exceeds that of the rest by this factor and by so many standard errors."""


def warm_up(values: Sequence[float]) -> int:
    """Return how many values of the beginning of a series belong to its warm-up.

    The cut is MSER-5's, of all cuts in the first half the one that leaves the smallest standard error of the mean of
    the rest, or rather the first one that is nearly as good. MSER always names a cut, so what it would drop is kept
    unless it is clearly slower than the rest.
    Source: White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69 (1997).

    Args:
        values: Times, one a request, in the order of sending; larger is slower.
    """
    if len(values) < LEAST:
        return 0
    size = min(BATCH, max(1, len(values) // 10))
    means = [statistics.fmean(values[start : start + size]) for start in range(0, len(values) - size + 1, size)]
    errors = [_squared_error(means[first:]) for first in range(len(means) // 2 + 1)]
    cut = size * next(first for first, error in enumerate(errors) if error <= NEARLY * min(errors))
    return cut if cut and _is_slower(values[:cut], values[cut:]) else 0


def _squared_error(means: Sequence[float]) -> float:
    middle = statistics.fmean(means)
    return math.fsum((mean - middle) ** 2 for mean in means) / len(means) ** 2


def _is_slower(beginning: Sequence[float], rest: Sequence[float]) -> bool:
    usual = statistics.fmean(rest)
    error = statistics.stdev(rest) * math.sqrt(1 / len(beginning) + 1 / len(rest))
    return statistics.fmean(beginning) > max(SLOWER * usual, usual + ERRORS * error)
