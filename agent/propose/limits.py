"""Where a limit may begin: a threshold claims no more than what failed, but may reach as far as what passed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from search_spaces import Comparison, Condition, Scalar
from search_spaces.condition import is_number


def reach(condition: Condition, value: Scalar, domain: Sequence[Scalar], passed: Iterable[Scalar] = ()) -> float:
    """Return how likely a condition holds for a value, where a threshold may begin anywhere up to what passed.

    Args:
        condition: What the failures so far satisfy, claiming as little as possible.
        value: A value of its parameter.
        domain: The values of its parameter.
        passed: Values with which launches passed that satisfy all else of the cause.
    """
    if condition.matches({condition.parameter: value}):
        return 1.0
    if condition.comparison is Comparison.EQUAL or not is_number(value) or not is_number(condition.value):
        return 0.0
    sign = 1.0 if condition.comparison is Comparison.AT_LEAST else -1.0
    numbers = sorted(sign * float(each) for each in domain if is_number(each))
    known = sign * float(condition.value)
    # A threshold at the end of the domain would be none; "at most" that end is what "equal" says.
    possible = numbers[1:] if sign > 0 else numbers[1:-1]
    nearest = max((sign * float(each) for each in passed if is_number(each)), default=-float("inf"))
    begins = [each for each in possible if nearest < each <= known]
    return sum(each <= sign * float(value) for each in begins) / len(begins) if begins else 0.0
