"""What is believed of causes before anything was seen."""

from __future__ import annotations

from collections.abc import Sequence

SIZE_PRIOR = (1.0, 0.08, 0.01)
"""Of one condition, two, three: each further one multiplies the conjunctions there are, and few of them are real."""
LARGEST = len(SIZE_PRIOR)
"""Conditions of the largest conjunctions that are weighed; only where none is left, the whole assignment is."""
OTHER_CAUSE = 0.05
"""How likely one more failure of the same reason has a cause of its own."""
NEW_CAUSE = 0.003
"""How likely a given condition is a cause that somebody would have to assume."""


def size_prior(conditions: Sequence[int]) -> float:
    """Return how likely a conjunction is, compared with a single condition, by its size alone."""
    return SIZE_PRIOR[min(len(conditions), LARGEST) - 1]
