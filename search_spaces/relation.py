"""Typed rules between parameters. There is no expression language: a rule is one of these, or it is not a rule."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from search_spaces.assignment import Scalar, is_one_of
from search_spaces.parameter import SpaceModel, StrictScalar

Clause = Mapping[str, tuple[StrictScalar, ...]]


class Implies(SpaceModel):
    """Where every parameter of `if` has one of its listed values, those of `then` must have one of theirs."""

    condition: Clause = Field(alias="if")
    consequence: Clause = Field(alias="then")


class AtMost(SpaceModel):
    """`left` must not be greater than `right`; a value that is not a number puts no bound."""

    left: str
    right: str


class Relation(SpaceModel):
    """One rule, and why it holds."""

    why: str
    implies: Implies | None = None
    at_most: AtMost | None = None

    @model_validator(mode="after")
    def _is_one_rule(self) -> Relation:
        if (self.implies is None) == (self.at_most is None):
            raise ValueError("needs exactly one of 'implies' and 'at_most'")
        return self

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters the rule speaks of."""
        if self.at_most is not None:
            return (self.at_most.left, self.at_most.right)
        implies = self.implies
        return tuple(dict.fromkeys((*implies.condition, *implies.consequence))) if implies else ()

    def holds(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether the assignment obeys the rule."""
        if self.at_most is not None:
            left, right = assignment[self.at_most.left], assignment[self.at_most.right]
            return isinstance(left, str) or isinstance(right, str) or left <= right
        implies = self.implies
        if implies is None or not _matches(implies.condition, assignment):
            return True
        return _matches(implies.consequence, assignment)

    def can_hold(self, domains: Mapping[str, tuple[Scalar, ...]]) -> bool:
        """Return whether any values of these domains obey the rule, without looking at every combination of them."""
        if self.at_most is not None:
            left, right = domains[self.at_most.left], domains[self.at_most.right]
            numbers = [[value for value in side if not isinstance(value, str)] for side in (left, right)]
            has_text = len(numbers[0]) < len(left) or len(numbers[1]) < len(right)
            return has_text or min(numbers[0]) <= max(numbers[1])
        implies = self.implies
        if implies is None:
            return True
        never_met = any(
            not is_one_of(value, allowed) for name, allowed in implies.condition.items() for value in domains[name]
        )
        return never_met or all(
            any(is_one_of(value, allowed) for value in domains[name]) for name, allowed in implies.consequence.items()
        )


def _matches(clause: Clause, assignment: Mapping[str, Scalar]) -> bool:
    return all(is_one_of(assignment[name], allowed) for name, allowed in clause.items())
