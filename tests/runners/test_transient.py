"""Where a series settles, on series whose warm-up is known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.transient import LEAST, warm_up


def steady(number: int, seed: int, sd: float = 0.05) -> list[float]:
    source = random.Random(seed)
    return [source.lognormvariate(0.0, sd) for _ in range(number)]


@pytest.mark.parametrize("length", [3, 5, 10])
def test_a_slow_beginning_is_found(length: int) -> None:
    """Whole, and hardly more than it."""
    for seed in range(20):
        rest = steady(60, seed)
        cut = warm_up([3.0 * each for each in steady(length, seed + 1000)] + rest)
        assert length <= cut <= length + 10


def test_a_beginning_that_fades_is_cut_where_it_is_over() -> None:
    series = [each + 4.0 * 0.7**place for place, each in enumerate(steady(80, seed=3))]
    assert 5 <= warm_up(series) <= 20


def test_a_steady_series_loses_nothing() -> None:
    """MSER-5 alone would always drop something: of a hundred series at most two lose anything."""
    assert sum(warm_up(steady(64, seed)) > 0 for seed in range(100)) <= 2


@pytest.mark.parametrize("number", [0, 1, 19])
def test_a_short_series_tells_nothing(number: int) -> None:
    assert number < LEAST
    assert warm_up([100.0, *[1.0] * 18][:number]) == 0


def test_a_fast_beginning_is_no_warm_up() -> None:
    """Dropping it would make a launch look slower than it is served."""
    assert warm_up([0.2] * 5 + steady(50, seed=1)) == 0


@given(st.lists(st.floats(0.001, 1e6), max_size=80))
def test_at_least_half_of_a_series_stays(values: list[float]) -> None:
    assert 0 <= warm_up(values) <= max(0, len(values)) // 2 + 5
