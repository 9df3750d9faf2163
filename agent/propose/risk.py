"""How likely a launch fails: by what the map suspects, and by what never was seen to work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from agent.deadends.claims import claims, visible_at
from agent.deadends.explain import LEAST_SHARE
from agent.deadends.suspicion import Suspicion
from agent.propose import working
from agent.propose.causes import Causes
from agent.propose.history import History
from runners import Rung
from search_spaces import Assignment, Conjunction, Scalar, matches_all

NEW_VALUE_FAILS, NEW_PAIR_FAILS = 0.15, 0.01
"""How likely a value, or two values together, that never were seen to work make a launch fail."""
MOST_KEPT = 2**15
"""Assignments of which it is kept what of them is new: a cache, and all are forgotten where there are more."""

_Value = tuple[str, str]


@dataclass(frozen=True)
class Risk:
    """What a study knows of failures that are not explained yet."""

    history: History

    def chance(self, point: Assignment) -> float:
        """Return how likely a launch of the point works."""
        new_values, new_pairs = self._novelty(point)
        chance = self.chance_beside(point)
        return chance * (1 - NEW_VALUE_FAILS) ** new_values * (1 - NEW_PAIR_FAILS) ** new_pairs

    def _novelty(self, point: Assignment) -> tuple[int, int]:
        """Return how many values, and pairs of values, of a point never served: the same until more serve."""
        key = tuple(point.items())
        if key not in self._novel:
            values = [(name, repr(value)) for name, value in point.items()]
            new_values = sum(value not in self._known_values for value in values)
            self._novel[key] = new_values, sum(pair not in self._known_pairs for pair in combinations(values, 2))
        return self._novel[key]

    def fails_at(self, rung: Rung, point: Assignment) -> float:
        """Return how likely a launch fails by what a rung can show, given what worked there or above it."""
        history, names = self.history, visible_at(rung, self.history.space)
        values = [(name, repr(point[name])) for name in names]
        known, pairs = working.working_values(history, rung, names), working.working_pairs(history, rung, names)
        unseen, works = history.atlas.weightless | history.atlas.missed, 1.0
        for suspicion, causes in self._suspected:
            failure = suspicion.failed.failure
            if claims(rung, failure) and (rung, failure.reason) not in unseen:
                seen = [cause for cause in causes if all(each.parameter in names for each in cause[0])]
                works *= 1.0 - sum(share for conditions, share in seen if matches_all(conditions, point))
        works *= (1 - NEW_VALUE_FAILS) ** sum(value not in known for value in values)
        return 1.0 - works * (1 - NEW_PAIR_FAILS) ** sum(pair not in pairs for pair in combinations(values, 2))

    def chance_beside(self, point: Assignment, suspicion: Suspicion | None = None) -> float:
        """Return how likely no suspected cause strikes, leaving out those of one suspicion's reason."""
        chance = 1.0
        for other, causes in self._prepared:
            if suspicion is None or other.failed.failure.reason is not suspicion.failed.failure.reason:
                chance *= 1.0 - causes.share(point)
        return chance

    @cached_property
    def _prepared(self) -> list[tuple[Suspicion, Causes]]:
        """The suspected causes in a form that takes a few operations a point: thousands are asked about.

        Where chance is nearly certain there is none.
        """
        return [(suspicion, Causes(causes)) for suspicion, causes in self._suspected if causes]

    @cached_property
    def _suspected(self) -> list[tuple[Suspicion, list[tuple[Conjunction, float]]]]:
        return [
            (
                suspicion,
                [(each.conditions, each.share) for each in suspicion.explanations if each.share >= LEAST_SHARE / 2],
            )
            for suspicion in self.history.atlas.suspicions
        ]

    @cached_property
    def _novel(self) -> dict[tuple[tuple[str, Scalar], ...], tuple[int, int]]:
        of = (self.history.space, len(self._known_values), len(self._known_pairs))  # both only grow
        found: dict[tuple[tuple[str, Scalar], ...], tuple[int, int]] = self.history.memo.derived("novelty", of, dict)
        if len(found) > MOST_KEPT:
            found.clear()
        return found

    @cached_property
    def _known_values(self) -> set[_Value]:
        """What served. That something passes with made-up weights says nothing of what hangs on the real ones."""
        return working.served_values(self.history)

    @cached_property
    def _known_pairs(self) -> set[tuple[_Value, _Value]]:
        return working.served_pairs(self.history)
