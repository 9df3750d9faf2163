"""Escapes: the near variants of a dead end's values, and what the closed trials say of each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.deadends.claims import reaches
from agent.deadends.dead_end import DeadEnd, Escape, EscapeState
from agent.deadends.observation import Observation
from runners import Rung
from search_spaces import Comparison, Conjunction, Facts, Scalar, SearchSpace
from search_spaces.assignment import is_one_of


@dataclass(slots=True)
class _Told:
    """What the launches with a variant say of a dead end, as far as they were looked at."""

    number: int = 0
    passed: Observation | None = None
    """The earliest one that passed."""
    tried: Observation | None = None
    """The earliest one that is the dead end's own launch with the variant."""


class Variants:
    """What was seen of the values that stand in somebody's place. Only grows."""

    def __init__(self, space: SearchSpace, facts: Facts) -> None:
        self._space, self._facts = space, facts
        near = [variant.instead for parameter in space.parameters.values() for variant in parameter.near]
        self._watched = {(name, repr(value)) for instead in near for name, value in instead.items()}
        self._seen: dict[tuple[str, str], list[Observation]] = defaultdict(list)
        self._told: dict[tuple[Conjunction, Rung, str, str], _Told] = {}

    def take(self, seen: Observation) -> bool:
        """Take in a closed trial; return whether it has a value that is somebody's near variant."""
        keys = {(name, repr(seen.assignment[name])) for name in seen.visible} & self._watched
        for key in keys:
            self._seen[key].append(seen)
        return bool(keys)

    def escapes(self, found: DeadEnd) -> tuple[Escape, ...]:
        """Return the near variants of a dead end's values, each with what became of it."""
        return tuple(self._judged(found, escape) for escape in near_variants(found, self._space))

    def _judged(self, found: DeadEnd, escape: Escape) -> Escape:
        """A launch with the variant that passed where the rest of the dead end holds shows that it works."""
        point = self._space.normalise({**found.observed, **escape.instead}, self._facts)
        key = (found.conditions, found.rung, str(escape.instead), str(point))
        kept = self._told.setdefault(key, _Told())
        first = next(iter(escape.instead.items()))
        seen = self._seen[first[0], repr(first[1])]
        for each in (each for each in seen[kept.number :] if self._tells(found, escape, each)):
            if each.passed:
                kept.passed = _earlier(kept.passed, each)
            if all(each.assignment[name] == point[name] for name in each.visible):
                kept.tried = _earlier(kept.tried, each)
        kept.number = len(seen)
        if kept.passed is not None:
            return escape.model_copy(update={"state": EscapeState.WORKED, "trial": kept.passed.label})
        if kept.tried is None:
            return escape
        return escape.model_copy(update={"state": EscapeState.FAILED, "trial": kept.tried.label})

    def _tells(self, found: DeadEnd, escape: Escape, seen: Observation) -> bool:
        if not reaches(seen.rung, escape_rung(found, escape, self._space)):
            return False
        rest = [condition for condition in found.conditions if condition.parameter not in escape.instead]
        has_values = all(is_one_of(seen.assignment[name], (value,)) for name, value in escape.instead.items())
        return has_values and all(condition.matches(seen.assignment) for condition in rest)


def _earlier(known: Observation | None, seen: Observation) -> Observation:
    return seen if known is None or seen.moment < known.moment else known


def near_variants(found: DeadEnd, space: SearchSpace) -> Iterator[Escape]:
    """Yield the variants that the space declares for the values in a dead end's conditions, untried."""
    for condition in found.conditions:
        parameter = space.parameters.get(condition.parameter)
        if parameter is None or condition.comparison is not Comparison.EQUAL:
            continue
        for variant in parameter.near:
            if is_one_of(variant.value, (condition.value,)) and _is_sayable(variant.instead, space):
                yield Escape(instead=dict(variant.instead), why=variant.why)


def _is_sayable(instead: Mapping[str, Scalar], space: SearchSpace) -> bool:
    """A narrowed space may lack the variant's value."""
    known = space.parameters
    return all(name in known and is_one_of(value, known[name].domain) for name, value in instead.items())


def escape_rung(found: DeadEnd, escape: Escape, space: SearchSpace) -> Rung:
    """Return the cheapest rung that can tell: a probe where it shows the failure and sees the variant."""
    is_visible = all(name in space.probe_parameters for name in escape.instead)
    return Rung.PROBE if found.rung is Rung.PROBE and is_visible else Rung.FULL
