"""The best assignment of a modelled node, exactly: branch and bound over the values that the model can tell apart.

A partial assignment is given up when it already fails, already is a silent fallback (it runs as another assignment of
the space, which is looked at on its own), or cannot beat the best one even if every undecided effect turned out well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from search_spaces.assignment import Assignment, Scalar, is_one_of
from search_spaces.node_answers import Allowed, Changes, geometric_mean, holds
from search_spaces.node_model import LEVELS, NodeModel
from search_spaces.node_parts import Effect
from search_spaces.relation import Relation


@dataclass(frozen=True, slots=True)
class Best:
    """The best assignment and its objective without noise (output tokens per second, geometric mean of the levels)."""

    assignment: Assignment
    value: float


def best(node: NodeModel, levels: Sequence[int] = LEVELS) -> Best | None:
    """Return the best assignment that works for certain, or None where nothing works."""
    return _Search(node, tuple(levels)).run()


class _Search:
    def __init__(self, node: NodeModel, levels: tuple[int, ...]) -> None:
        self._node, self._levels, self._answers = node, levels, node.answers
        self._pruned = [each for failure, each in node.answers.failures if not failure.is_flaky]
        self._pruned += [each for _, each in node.answers.no_ops]
        self._order = self._ordered()
        self._domains = {name: self._told_apart(name) for name in self._order}
        effects = [pair for pair in node.answers.effects if pair[1]]
        self._always = [effect for effect, allowed in node.answers.effects if not allowed]
        self._single = [(effect, allowed[0]) for effect, allowed in effects if len(allowed) == 1]
        self._joint = [(effect, allowed) for effect, allowed in effects if len(allowed) > 1]
        self._hopes = [[self._hope(depth, level) for level in levels] for depth in range(len(self._order) + 1)]
        draft = node.answers.performance.draft
        needed = {draft.parameter, *draft.off_when} if draft else set()
        self._drafted_at = max((self._order.index(name) + 1 for name in needed), default=0)
        self._best: Best | None = None

    def run(self) -> Best | None:
        self._descend({}, 0)
        return self._best

    def _descend(self, partial: Assignment, depth: int) -> None:
        if depth == len(self._order):
            self._take({name: partial[name] for name in self._node.space.parameters}, self._bound(partial, depth))
            return
        children = [{**partial, self._order[depth]: value} for value in self._choices(partial, depth)]
        hopes = [(self._bound(child, depth + 1), index) for index, child in enumerate(children)]
        for hope, index in sorted(hopes, key=lambda pair: -pair[0]):
            if hope > 0 and (self._best is None or hope > self._best.value):
                self._descend(children[index], depth + 1)

    def _take(self, point: Assignment, value: float) -> None:
        """Keep the point if it is the best; one that is not in normal form runs as another one, which is looked at."""
        space, facts = self._node.space, self._node.facts
        is_launched = space.normalise(point, facts) == point and space.violation(point, facts) is None
        if is_launched and (self._best is None or value > self._best.value):
            self._best = Best(point, value)

    def _choices(self, partial: Assignment, depth: int) -> tuple[Scalar, ...]:
        """Return the values that a parameter may have beside those above it; an inactive one stands at its default."""
        parameter = self._node.space.parameters[self._order[depth]]
        if not parameter.is_active(partial, self._node.facts):
            return (parameter.default_on(self._node.facts),)
        return self._domains[self._order[depth]]

    def _bound(self, partial: Assignment, depth: int) -> float:
        """Return a value that no completion of the assignment exceeds; 0 where all of them fail."""
        for allowed in self._pruned:
            if all(name in partial and partial[name] in values for name, values in allowed):
                return 0.0
        if depth < self._drafted_at:
            return float("inf")
        drafted = self._answers.num_drafted(partial)
        certain = [effect for effect, (name, values) in self._single if name in partial and partial[name] in values]
        certain += [effect for effect, allowed in self._joint if _is_certain(allowed, partial)]
        possible = [effect for effect, allowed in self._joint if _may_help(effect) and _is_possible(allowed, partial)]
        rates = []
        for level, hope in zip(self._levels, self._hopes[depth], strict=True):
            changes = Changes()
            for effect in (*self._always, *certain):
                changes.add(effect, level)
            for effect in possible:
                changes.add(effect, level)
            _combine(changes, hope)
            rates.append(self._answers.step(drafted, level, changes).tok_per_s)
        return geometric_mean(rates)

    def _hope(self, depth: int, level: int) -> Changes:
        """Return the best that effects of one open parameter each can do, for each component on its own."""
        hope = Changes()
        for name in self._order[depth:]:
            own = [(effect, values) for effect, (other, values) in self._single if other == name]
            each = [self._changes((e for e, values in own if value in values), level) for value in self._domains[name]]
            for component in hope.times:
                pick = max if component == "acceptance" else min
                hope.times[component] *= pick(changes.times[component] for changes in each)
                hope.plus_us[component] += min(changes.plus_us[component] for changes in each)
        return hope

    def _changes(self, effects: Iterable[Effect], level: int) -> Changes:
        changes = Changes()
        for effect in effects:
            changes.add(effect, level)
        return changes

    def _ordered(self) -> list[str]:
        """Return the parameters, those first that decide the draft and those with most to say; never before one that
        they depend on."""
        draft = self._answers.performance.draft
        first = {draft.parameter, *draft.off_when} if draft else set()
        weight = {
            name: (name not in first, -sum(name == other for allowed in self._clauses() for other, _ in allowed))
            for name in self._node.space.parameters
        }
        order: list[str] = []
        while len(order) < len(weight):
            ready = (
                name
                for name, parameter in self._node.space.parameters.items()
                if name not in order and set(parameter.active_when) <= set(order)
            )
            order.append(min(ready, key=lambda name: weight[name]))
        return order

    def _clauses(self) -> Iterator[Allowed]:
        yield from self._pruned
        yield from (allowed for _, allowed in self._answers.effects)

    def _told_apart(self, name: str) -> tuple[Scalar, ...]:
        """Return one value of each set of values that the model treats alike, the default where it is one of them."""
        space, draft = self._node.space, self._answers.performance.draft
        domain = space.parameters[name].domain
        is_compared = any(relation.implies is None and name in relation.parameters for relation in space.relations)
        if is_compared or (draft is not None and draft.parameter == name):
            return domain
        clauses = (*self._clauses(), self._answers.off_when)
        sets = [values for allowed in clauses for other, values in allowed if other == name]
        asked = [each.active_when[name] for each in space.parameters.values() if name in each.active_when]
        asked += [values for relation in space.relations for values in _implied(relation, name)]
        default = space.parameters[name].default_on(self._node.facts)
        kept: dict[tuple[bool, ...], Scalar] = {}
        for value in (default, *domain):
            seen = (*(value in values for values in sets), *(is_one_of(value, values) for values in asked))
            kept.setdefault(seen, value)
        return tuple(kept.values())


def _implied(relation: Relation, name: str) -> Iterator[tuple[Scalar, ...]]:
    if relation.implies is not None:
        for _, clause in relation.clauses():
            if name in clause:
                yield clause[name]


def _is_certain(allowed: Allowed, partial: Mapping[str, Scalar]) -> bool:
    return all(name in partial for name, _ in allowed) and holds(allowed, partial)


def _is_possible(allowed: Allowed, partial: Mapping[str, Scalar]) -> bool:
    is_open = any(name not in partial for name, _ in allowed)
    return is_open and all(name not in partial or partial[name] in values for name, values in allowed)


def _may_help(effect: Effect) -> bool:
    if effect.times is not None:
        return effect.times > 1 if effect.component == "acceptance" else effect.times < 1
    return effect.plus_us is not None and effect.plus_us < 0


def _combine(changes: Changes, hope: Changes) -> None:
    for component in changes.times:
        changes.times[component] *= hope.times[component]
        changes.plus_us[component] += hope.plus_us[component]
