"""Conditions that the space itself implies: no experiment can tell an explanation with them from the one without.

Where `allreduce = custom` leaves `nccl_algo` without meaning, `nccl_algo` stands at its default in every such launch;
where `moe_a2a_backend = deepep` makes the engine set `ep_size`, it has that value in every such launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.deadends.lexicon import Lexicon
from search_spaces import Condition, Facts, Scalar, SearchSpace
from search_spaces.assignment import is_one_of

Weighed = tuple[float, tuple[int, ...], int]
"""A possible cause: weight, conditions as the lexicon numbers them, failures covered."""


def _shorter(conditions: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield each condition with what is left without it."""
    if len(conditions) > 1:
        yield from ((number, conditions - {number}) for number in sorted(conditions))


class Implications:
    """Which conditions follow from which in a space on one node."""

    def __init__(self, space: SearchSpace, facts: Facts, lexicon: Lexicon) -> None:
        self.space, self.facts, self._lexicon = space, facts, lexicon
        self._always: dict[int, bool] = {}
        self._known: dict[tuple[int, int], bool] = {}

    def folded(self, found: Sequence[Weighed]) -> list[Weighed]:
        """Return the causes without those that say no more than a shorter one, which gets their weights."""
        weights = {frozenset(numbers): weight for weight, numbers, _ in found}
        for mine in sorted(weights, key=len, reverse=True):
            known = ((number, less) for number, less in _shorter(mine) if less in weights)
            shorter = next((less for number, less in known if self._is_said(less, number)), None)
            if shorter is not None:
                weights[shorter] += weights.pop(mine)
        kept = ((weights.get(frozenset(numbers)), numbers, support) for _, numbers, support in found)
        return [(weight, numbers, support) for weight, numbers, support in kept if weight is not None]

    def _is_said(self, conditions: frozenset[int], number: int) -> bool:
        """Return whether one of the conditions implies another one."""
        return self._always_holds(number) or any(self._follows(other, number) for other in conditions)

    def _always_holds(self, number: int) -> bool:
        """Return whether the condition holds whatever is launched: its parameter is pinned, or has no meaning here."""
        if number not in self._always:
            condition = self._lexicon.condition(number)
            parameter = self.space.parameters[condition.parameter]
            values = parameter.domain if parameter.can_vary(self.facts) else (parameter.default_on(self.facts),)
            self._always[number] = all(condition.matches({condition.parameter: value}) for value in values)
        return self._always[number]

    def _follows(self, cause: int, effect: int) -> bool:
        key = (cause, effect)
        if key not in self._known:
            self._known[key] = self.implies(self._lexicon.condition(cause), self._lexicon.condition(effect))
        return self._known[key]

    def implies(self, cause: Condition, effect: Condition) -> bool:
        """Return whether every launch that satisfies `cause` satisfies `effect`."""
        values = self._values(cause)
        return bool(values) and all(self._forces(cause.parameter, value, effect) for value in values)

    def _values(self, condition: Condition) -> tuple[Scalar, ...]:
        domain = self.space.parameters[condition.parameter].domain
        return tuple(value for value in domain if condition.matches({condition.parameter: value}))

    def _forces(self, name: str, value: Scalar, effect: Condition) -> bool:
        """Return whether one value of a parameter leaves another one only values that satisfy the effect."""
        parameters = self.space.parameters
        other = parameters[effect.parameter]
        allowed = other.active_when.get(name)
        if allowed is not None and not is_one_of(value, allowed):
            return effect.matches({effect.parameter: other.default_on(self.facts)})
        needed = parameters[name].active_when.get(effect.parameter)
        if needed is not None and not is_one_of(value, (parameters[name].default_on(self.facts),)):
            return all(effect.matches({effect.parameter: each}) for each in needed)
        return any(effect.matches({effect.parameter: each}) for each in self._set_by_relations(name, value, effect))

    def _set_by_relations(self, name: str, value: Scalar, effect: Condition) -> Iterator[Scalar]:
        """Yield what a relation with this one condition sets the effect's parameter to."""
        point = {name: value}
        for relation in self.space.relations:
            forced = relation.forced
            is_met = set(relation.where) == {name} and is_one_of(value, relation.where[name])
            if forced is None or not is_met or forced.parameter != effect.parameter or isinstance(forced.to, str):
                continue
            if (target := relation.forced_value(point, self.facts)) is not None:
                yield target
