"""Conditions over parameters, and conjunctions of them: the shape of a dead end, and of a planted failure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from search_spaces.assignment import Scalar
from search_spaces.scalar import StrictScalar
from search_spaces.switches import SpaceModel


class Comparison(StrEnum):
    """How a parameter is compared with the condition's value."""

    EQUAL = "="
    AT_LEAST = "≥"
    AT_MOST = "≤"


class Condition(SpaceModel):
    """One parameter compared with one value."""

    parameter: str
    comparison: Comparison = Comparison.EQUAL
    value: StrictScalar

    def matches(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether the assignment satisfies the condition."""
        actual = assignment[self.parameter]
        if self.comparison is Comparison.EQUAL:
            return type(actual) is type(self.value) and actual == self.value
        if not is_number(actual) or not is_number(self.value):
            return False
        if self.comparison is Comparison.AT_LEAST:
            return float(actual) >= float(self.value)
        return float(actual) <= float(self.value)

    def __str__(self) -> str:
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.parameter} {self.comparison.value} {value}"


Conjunction = tuple[Condition, ...]


def matches_all(conditions: Conjunction, assignment: Mapping[str, Scalar]) -> bool:
    """Return whether the assignment satisfies every condition."""
    return all(condition.matches(assignment) for condition in conditions)


def is_number(value: Scalar) -> bool:
    """Return whether a value stands in an order with others; true and false do not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
