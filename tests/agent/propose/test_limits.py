"""Where a threshold may begin."""

from __future__ import annotations

import pytest

from agent.propose.limits import reach
from search_spaces import Comparison, Condition, Scalar

DOMAIN = (1, 2, 4, 8, 16)


def limit(comparison: Comparison, value: Scalar) -> Condition:
    """Return a condition on a parameter."""
    return Condition(parameter="graph", comparison=comparison, value=value)


@pytest.mark.parametrize(("value", "expected"), [(16, 1.0), (8, 1.0), (4, 2 / 3), (2, 1 / 3), (1, 0.0)])
def test_a_lower_limit_may_begin_anywhere_above_the_least_value(value: int, expected: float) -> None:
    """Of 2, 4 and 8 each is as likely; a limit at the least value would be none."""
    assert reach(limit(Comparison.AT_LEAST, 8), value, DOMAIN) == pytest.approx(expected)


@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (2, 1.0), (4, 2 / 3), (8, 1 / 3), (16, 0.0)])
def test_an_upper_limit_may_begin_anywhere_below_the_greatest_value(value: int, expected: float) -> None:
    """Of 2, 4 and 8 each is as likely."""
    assert reach(limit(Comparison.AT_MOST, 2), value, DOMAIN) == pytest.approx(expected)


def test_a_limit_does_not_reach_what_passed() -> None:
    """Between 2, which passed, and 8, which failed, two limits are left."""
    condition = limit(Comparison.AT_LEAST, 8)
    assert [reach(condition, value, DOMAIN, passed=(1, 2)) for value in DOMAIN] == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_a_single_value_reaches_no_other() -> None:
    """Equal is equal."""
    assert [reach(limit(Comparison.EQUAL, 4), value, DOMAIN) for value in DOMAIN] == [0.0, 0.0, 1.0, 0.0, 0.0]
