"""What one more launch is expected to teach about whom to declare: the knowledge gradient.

A launch of an assignment tells of every other one that shares values with it. It is worth as much as the best
expectation after it is expected to exceed the best one now; a repeat and a new assignment are weighed alike.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

DRAWS = 33
"""Equally likely results of a launch that are looked at."""


def gradients(means: Table, shared: Table, own_means: Table, own_sds: Table, noise_sd: float) -> Table:
    """Return what one launch of each candidate is expected to add to the best expectation; (candidates,).

    Args:
        means: Expectations of the assignments that may be declared; (declarable,).
        shared: Covariance of the candidates with these; (candidates, declarable).
        own_means: Expectations of the candidates, which may be declared as well once they were launched; (candidates,).
        own_sds: Their standard deviations; (candidates,).
        noise_sd: Standard deviation of a launch. All of these are in logarithms of the objective.
    """
    import numpy as np

    results = np.array(_draws())
    spread = np.sqrt(own_sds**2 + noise_sd**2)
    best = (own_means[:, None] + (own_sds**2 / spread)[:, None] * results[None, :]).copy()
    for mean, column in zip(means, shared.T, strict=True):
        np.maximum(best, mean + (column / spread)[:, None] * results[None, :], out=best)
    gains: Table = np.maximum(best.mean(axis=1) - float(means.max()), 0.0)
    return gains


@lru_cache(maxsize=1)
def _draws() -> tuple[float, ...]:
    normal = NormalDist()
    return tuple(normal.inv_cdf((index + 0.5) / DRAWS) for index in range(DRAWS))
