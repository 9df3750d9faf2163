"""Conditions that the space itself implies: no experiment can tell an explanation with them from the one without.

Where `allreduce = custom` leaves `nccl_algo` without meaning, `nccl_algo` stands at its default in every such launch;
where `moe_a2a_backend = deepep` makes the engine set `ep_size`, it has that value in every such launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from agent.deadends.explain import Explanation
from search_spaces import Condition, Facts, Scalar, SearchSpace
from search_spaces.assignment import is_one_of


@dataclass
class Implications:
    """Which conditions follow from which in a space on one node."""

    space: SearchSpace
    facts: Facts
    _known: dict[tuple[Condition, Condition], bool] = field(default_factory=dict)

    def folded(self, found: Sequence[Explanation]) -> list[Explanation]:
        """Return the explanations without those that say no more than a shorter one, which gets their shares."""
        shares: dict[frozenset[Condition], float] = {frozenset(each.conditions): each.share for each in found}
        for each in sorted(found, key=lambda one: -len(one.conditions)):
            mine = frozenset(each.conditions)
            shorter = next((less for less in self._shorter(mine) if less in shares), None)
            if shorter is not None:
                shares[shorter] += shares.pop(mine)
        kept = [each for each in found if frozenset(each.conditions) in shares]
        folded = [replace(each, share=shares[frozenset(each.conditions)]) for each in kept]
        return sorted(folded, key=lambda each: -each.share)

    def _shorter(self, conditions: frozenset[Condition]) -> Iterator[frozenset[Condition]]:
        """Yield what is left of a conjunction when one condition that the others imply is taken out."""
        for condition in sorted(conditions, key=str):
            rest = conditions - {condition}
            if rest and (self._always_holds(condition) or any(self.implies(other, condition) for other in rest)):
                yield rest

    def _always_holds(self, condition: Condition) -> bool:
        """Return whether the condition holds whatever is launched: its parameter is pinned, or has no meaning here."""
        parameter = self.space.parameters[condition.parameter]
        values = parameter.domain if parameter.can_vary(self.facts) else (parameter.default_on(self.facts),)
        return all(condition.matches({condition.parameter: value}) for value in values)

    def implies(self, cause: Condition, effect: Condition) -> bool:
        """Return whether every launch that satisfies `cause` satisfies `effect`."""
        key = (cause, effect)
        if key not in self._known:
            values = self._values(cause)
            self._known[key] = bool(values) and all(self._forces(cause.parameter, value, effect) for value in values)
        return self._known[key]

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
