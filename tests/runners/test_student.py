"""Student's t without a library: against the exact values of scipy."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from runners.student import t_quantile


@pytest.mark.parametrize("probability", [0.5, 0.9, 0.99, 0.995])
@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 100])
def test_a_quantile_is_nearly_the_exact_one(probability: float, freedom: int) -> None:
    """Within one per cent, for the probabilities that are used here."""
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=0.01, abs=1e-9)


def test_with_endless_freedom_it_is_the_normal_one() -> None:
    assert t_quantile(0.99, math.inf) == pytest.approx(stats.norm.ppf(0.99))
    assert t_quantile(0.99, 2.5) >= t_quantile(0.99, 3)
