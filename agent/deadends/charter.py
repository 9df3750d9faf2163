"""Keeps the map up to date as trials close: what one more trial cannot change is not learned again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.deadends.atlas import Atlas
from agent.deadends.evidence import Evidence
from agent.deadends.learn import Learned, learn
from agent.deadends.observation import Observation, observation_of
from agent.reasons import Reason
from agent.store.trial import Trial
from search_spaces import Facts, SearchSpace, matches_all


class Charter:
    """The map of a growing study."""

    def __init__(self, space: SearchSpace, facts: Facts) -> None:
        self._facts = facts
        self._evidence = Evidence(space)
        self._learned: dict[Reason, Learned] = {}
        self._seen: set[tuple[str, int]] = set()
        self._atlas = Atlas()
        self.ruled_out: Counter[str] = Counter()
        """Candidates that were not launched, by why, since this process began."""

    def chart(self, trials: Sequence[Trial], probes: Sequence[Trial]) -> Atlas:
        """Return the map of these trials, which must include all those of the call before."""
        changed: set[Reason] = set()
        for trial in (*probes, *trials):
            if not trial.counts or (trial.study, trial.number) in self._seen:
                continue
            self._seen.add((trial.study, trial.number))
            if (seen := observation_of(trial, self._evidence.space)) is not None:
                self._evidence.add(seen)
                changed |= self._touched_by(seen)
        for reason in changed:
            self._learned[reason] = learn(reason, self._evidence, self._facts)
        if changed:
            learned = [self._learned[reason] for reason in Reason if reason in self._learned]
            self._atlas = Atlas.of(learned)
        return self._atlas

    def _touched_by(self, seen: Observation) -> set[Reason]:
        """A failure touches its own reason; a pass every reason that is unclear, and those that it contradicts."""
        if seen.failure is not None:
            return {seen.failure.reason}
        return {reason for reason in self._evidence.reasons if self._is_open(reason, seen)}

    def _is_open(self, reason: Reason, seen: Observation) -> bool:
        learned = self._learned.get(reason)
        if learned is None or learned.suspected or learned.flaky:
            return True
        return any(matches_all(found.conditions, seen.assignment) for found in learned.confirmed)


def chart(trials: Sequence[Trial], probes: Sequence[Trial], space: SearchSpace, facts: Facts) -> Atlas:
    """Return the map that the closed trials support."""
    return Charter(space, facts).chart(trials, probes)
