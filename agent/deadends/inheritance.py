"""What a study takes over from the earlier ones of its storage, and what becomes of it.

A dead end whose facts are still the same blocks from the start; one of which a fact differs is stale, and blocks again
only once it was re-checked. Either is refuted by one pass in it. What is taken over is written into the new study's
description when it is created: what the other study learns later does not change this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.deadends.claims import reaches
from agent.deadends.dead_end import DeadEnd, DeadEndState, Origin
from agent.deadends.observation import Observation
from search_spaces import Assignment, Comparison, Condition, Facts, Scalar, SearchSpace
from search_spaces.assignment import is_one_of


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An earlier study of the same engine, with its map."""

    name: str
    space: SearchSpace
    facts: Facts
    dead_ends: Sequence[DeadEnd]
    is_alike: bool = True
    """Whether its engine ran with the same fixed options: where not, everything is checked again."""


def inherit(ancestors: Sequence[Ancestor], space: SearchSpace, facts: Facts) -> tuple[DeadEnd, ...]:
    """Return the dead ends that a new study starts from, confirmed or stale.

    Args:
        ancestors: Earlier studies, oldest first. Of what several say about the same conditions, the latest that ran
            under the facts of now counts; without one, the latest.
        space: The new study's space.
        facts: The facts of its node.
    """
    found: dict[tuple[object, ...], DeadEnd] = {}
    for ancestor in ancestors:
        for each in ancestor.dead_ends:
            key = (each.reason, each.conditions)
            is_here = ancestor.is_alike and each.holds_on(facts)
            known = found.get(key)
            if each.state is DeadEndState.REFUTED and is_here:
                found.pop(key, None)
            elif each.state in (DeadEndState.CONFIRMED, DeadEndState.STALE) and all(
                _is_in(c, space) for c in each.conditions
            ):
                is_settled = known is not None and known.state is DeadEndState.CONFIRMED
                if not is_settled or is_here:
                    found[key] = _taken_over(each, ancestor, space, facts, is_here)
    return tuple(found.values())


def _is_in(condition: Condition, space: SearchSpace) -> bool:
    parameter = space.parameters.get(condition.parameter)
    return parameter is not None and any(condition.matches({condition.parameter: value}) for value in parameter.domain)


def _taken_over(found: DeadEnd, ancestor: Ancestor, space: SearchSpace, facts: Facts, is_here: bool) -> DeadEnd:
    is_known = is_here and found.state is DeadEndState.CONFIRMED
    return found.model_copy(
        update={
            "state": DeadEndState.CONFIRMED if is_known else DeadEndState.STALE,
            "support": (),
            "contradicting": (),
            "escapes": (),
            "seconds": 0.0,
            "suspects": tuple(condition.parameter for condition in found.conditions),
            "origin": _origin(found, ancestor),
            "observed": _projected(found, space, facts),
            "within": _within(found, ancestor.space, space, facts),
        }
    )


def _origin(found: DeadEnd, ancestor: Ancestor) -> Origin | None:
    """What was only handed on still comes from where it was seen."""
    if not found.support:
        return found.origin
    return Origin(study=ancestor.name, support=found.support, scope=found.scope)


def _projected(found: DeadEnd, space: SearchSpace, facts: Facts) -> Assignment:
    """Return the failing assignment as the new space can say it: what it lacks stands at its default."""
    point: Assignment = {}
    for name, parameter in space.parameters.items():
        value = found.observed.get(name, parameter.default_on(facts))
        point[name] = value if is_one_of(value, parameter.domain) else parameter.default_on(facts)
    for condition in found.conditions:
        if not condition.matches(point):
            point[condition.parameter] = least_demanding(condition, space)
    return point


def least_demanding(condition: Condition, space: SearchSpace) -> Scalar:
    """Return the value at which a condition begins to hold: the only one, or the one nearest to the threshold.

    Raises:
        ValueError: when no value of the space satisfies the condition.
    """
    domain = space.parameters[condition.parameter].domain
    values = [value for value in domain if condition.matches({condition.parameter: value})]
    if not values:
        raise ValueError(f"no value of {condition.parameter} satisfies {condition}")
    if condition.comparison is Comparison.AT_MOST:
        return max(values, key=float)
    return min(values, key=float) if condition.comparison is Comparison.AT_LEAST else values[0]


def _within(found: DeadEnd, old: SearchSpace, new: SearchSpace, facts: Facts) -> dict[str, tuple[Scalar, ...]]:
    """Return the values of other parameters that the old study could have seen, where the new space has further ones.

    A parameter that was pinned, or that did not exist, belongs to every failure that was seen.
    """
    named = {condition.parameter for condition in found.conditions}
    within: dict[str, tuple[Scalar, ...]] = {}
    for name, parameter in new.parameters.items():
        known = old.parameters[name].domain if name in old.parameters else (parameter.default_on(facts),)
        known = tuple(value for value in known if is_one_of(value, found.within.get(name, known)))
        if name not in named and not all(is_one_of(value, known) for value in parameter.domain):
            within[name] = known
    return within


@dataclass
class Heirloom:
    """An inherited dead end in its new study, with what was seen in it there."""

    found: DeadEnd
    passes: list[Observation] = field(default_factory=list)
    failures: list[Observation] = field(default_factory=list)

    def take(self, seen: Observation, requested: Assignment) -> bool:
        """Take in a closed trial; return whether it says anything about the dead end.

        Where the engine now runs something else than was `requested`, the failure is gone too: that is a pass.
        """
        if not reaches(seen.rung, self.found.rung):
            return False
        if seen.passed and self.found.covers(requested, seen.visible):
            self.passes.append(seen)
            return True
        is_same = seen.failure is not None and seen.failure.reason is self.found.reason
        if not self.found.covers(seen.assignment, seen.visible) or not (seen.passed or is_same):
            return False
        (self.passes if seen.passed else self.failures).append(seen)
        return True

    @property
    def explains(self) -> bool:
        """True when the dead end holds here, so that failures in it need no other explanation."""
        return not self.passes and (self.found.state is DeadEndState.CONFIRMED or bool(self.failures))

    def entry(self, facts: Mapping[str, object]) -> DeadEnd:
        """Return what the map of the new study says of it."""
        if self.passes:
            oldest = sorted(self.passes, key=lambda seen: seen.moment)
            return self._updated(DeadEndState.REFUTED, facts, contradicting=tuple(seen.label for seen in oldest))
        if self.failures:
            return self._updated(DeadEndState.CONFIRMED, facts)
        return self.found

    def _updated(
        self, state: DeadEndState, facts: Mapping[str, object], contradicting: tuple[str, ...] = ()
    ) -> DeadEnd:
        failures = sorted(self.failures, key=lambda seen: seen.moment)
        update: dict[str, object] = {
            "state": state,
            "contradicting": contradicting,
            "scope": {name: facts[name] for name in self.found.depends_on if facts.get(name) is not None},
        }
        if failures:
            first = failures[0].failure
            update |= {
                "support": tuple(seen.label for seen in failures),
                "seconds": sum(seen.seconds for seen in failures),
                "observed": failures[0].assignment,
                "decisive": first.decisive.text if first and first.decisive else self.found.decisive,
            }
        return self.found.model_copy(update=update)
