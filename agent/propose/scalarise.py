"""Several goals as one figure for the search, with weights that change from launch to launch.

Each proposal draws weights and looks for the best assignment under them, so that over a study the whole front is
searched (ParEGO: Knowles, "ParEGO: a hybrid algorithm with on-line landscape approximation", IEEE TEVC 10, 2006). The
figure is an augmented Tchebycheff one over logarithms, so that it is a share of the merit like the figures it is of.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

AUGMENTED = 0.05
"""Weight of the sum beside the worst goal: without it, what is better in another goal alone would be no better."""
LEAST_RANGE = 0.05
"""Range of a goal's logarithm below which it is not stretched: all its values are nearly alike."""


def weights_of(number: int, seed: int, index: int) -> tuple[float, ...]:
    """Return a weight for each of `number` goals, evenly from the simplex and scaled to a largest one of 1.

    A pure function: the same study at the same launch draws the same weights.
    """
    source = random.Random(f"{seed}/weights/{index}")  # noqa: S311 - reproducible choices, not secrets
    drawn = [source.expovariate(1.0) for _ in range(number)]
    return tuple(each / max(drawn) for each in drawn)


def scalars(merits: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """Return one positive figure for each row of merits, of which more is better; 1 would be the best in every goal.

    Args:
        merits: One row a launch, one positive merit a goal (a latency's reciprocal, a rate as it is).
        weights: One a goal, the largest 1.
    """
    logs = [[math.log(merit) for merit in row] for row in merits]
    columns = list(zip(*logs, strict=True))
    tops, ranges = [max(column) for column in columns], [max(max(c) - min(c), LEAST_RANGE) for c in columns]
    usual = math.exp(math.fsum(math.log(each) for each in ranges) / len(ranges)) if ranges else 1.0
    found = []
    for row in logs:
        behind = [
            weight * (top - value) * usual / width
            for weight, top, value, width in zip(weights, tops, row, ranges, strict=True)
        ]
        found.append(math.exp(-(max(behind) + AUGMENTED * math.fsum(behind))))
    return found
