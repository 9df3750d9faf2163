"""Typed rules between parameters. There is no expression language: a rule is one of these, or it is not a rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pydantic import Field, model_validator

from search_spaces.assignment import Facts, Scalar, is_one_of
from search_spaces.scalar import StrictScalar
from search_spaces.switches import SpaceModel

Clause = Mapping[str, tuple[StrictScalar, ...]]
Domains = Mapping[str, tuple[Scalar, ...]]
MOST_PAIRS = 1_000_000
"""Pairs of values that are looked at to find out whether a rule can hold at all; beyond, it is believed."""


class FactReference(SpaceModel):
    """A fact of the node in the place of a parameter, such as `{fact: num_ranks}`."""

    fact: str


Operand = str | FactReference
"""A parameter's name, or a fact."""


class Implies(SpaceModel):
    """Where every parameter of `if` has one of its listed values, those of `then` must have one of theirs."""

    condition: Clause = Field(alias="if")
    consequence: Clause = Field(alias="then")


class AtMost(SpaceModel):
    """`left` must not be greater than `right`; a value that is not a number puts no bound."""

    left: Operand
    right: Operand


class Divides(SpaceModel):
    """`of` must be a multiple of `divisor`; a value that is not a number, and an unknown fact, put no bound."""

    divisor: Operand
    of: Operand


class Forced(SpaceModel):
    """The engine sets `parameter` to `to` + `plus`, whatever it was told; equal launches then have equal text."""

    parameter: str
    to: Operand
    plus: int = 0


class Relation(SpaceModel):
    """One rule, and why it holds."""

    why: str
    where: Clause = Field(default_factory=dict)
    """The rule binds only where every parameter listed here has one of its listed values."""
    implies: Implies | None = None
    at_most: AtMost | None = None
    divides: Divides | None = None
    forced: Forced | None = None

    @model_validator(mode="after")
    def _is_one_rule(self) -> Relation:
        if sum(rule is not None for rule in (self.implies, self.at_most, self.divides, self.forced)) != 1:
            raise ValueError("needs exactly one of 'implies', 'at_most', 'divides' and 'forced'")
        return self

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters the rule speaks of."""
        implies = self.implies
        names = (*implies.condition, *implies.consequence) if implies else ()
        operands = (operand for operand in self._operands if isinstance(operand, str))
        return tuple(dict.fromkeys((*names, *operands, *self.where)))

    @property
    def _operands(self) -> tuple[Operand, ...]:
        if self.at_most is not None:
            return (self.at_most.left, self.at_most.right)
        if self.divides is not None:
            return (self.divides.divisor, self.divides.of)
        return (self.forced.parameter, self.forced.to) if self.forced is not None else ()

    def holds(self, assignment: Mapping[str, Scalar], facts: Facts | None = None) -> bool:
        """Return whether the assignment obeys the rule on a node with these facts."""
        if not _matches(self.where, assignment):
            return True
        if self.implies is not None:
            met = _matches(self.implies.condition, assignment)
            return not met or _matches(self.implies.consequence, assignment)
        values = [_number(operand, assignment, facts or {}) for operand in self._operands]
        return any(value is None for value in values) or self._obeys(*(value or 0 for value in values))

    def forced_value(self, assignment: Mapping[str, Scalar], facts: Facts) -> int | None:
        """Return what the engine sets the forced parameter to, or None where this rule forces nothing."""
        if self.forced is None or not _matches(self.where, assignment):
            return None
        target = _number(self.forced.to, assignment, facts)
        return None if target is None else int(target) + self.forced.plus

    def can_hold(self, domains: Domains) -> bool:
        """Return whether any values of these domains obey the rule, without looking at every combination of them."""
        if _can_be_avoided(self.where, domains):
            return True
        if self.implies is not None:
            return _can_be_avoided(self.implies.condition, domains) or all(
                any(is_one_of(value, allowed) for value in domains[name])
                for name, allowed in self.implies.consequence.items()
            )
        if not all(isinstance(operand, str) for operand in self._operands):
            return True  # the node decides
        left, right = (domains[str(operand)] for operand in self._operands)
        if any(isinstance(value, str) for value in (*left, *right)) or len(left) * len(right) > MOST_PAIRS:
            return True
        return any(self._obeys(float(one), float(other)) for one in left for other in right)

    def _obeys(self, *values: float) -> bool:
        first, second = values
        if self.at_most is not None:
            return first <= second
        if self.divides is not None:
            return first > 0 and math.fmod(second, first) == 0
        return self.forced is not None and first == second + self.forced.plus

    def clauses(self) -> Iterator[tuple[tuple[str, ...], Clause]]:
        """Yield every clause of the rule with its place in the file, for checks of the values it names."""
        yield ("where",), self.where
        if self.implies is not None:
            yield ("implies", "if"), self.implies.condition
            yield ("implies", "then"), self.implies.consequence


def _number(operand: Operand, assignment: Mapping[str, Scalar], facts: Facts) -> float | None:
    value = assignment[operand] if isinstance(operand, str) else facts.get(operand.fact)
    return float(value) if isinstance(value, int | float) else None


def _can_be_avoided(clause: Clause, domains: Domains) -> bool:
    """Whether some value of a parameter of the clause is none of those it lists."""
    return any(not is_one_of(value, allowed) for name, allowed in clause.items() for value in domains[name])


def _matches(clause: Clause, assignment: Mapping[str, Scalar]) -> bool:
    return all(is_one_of(assignment[name], allowed) for name, allowed in clause.items())
