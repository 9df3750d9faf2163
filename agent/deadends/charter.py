"""Keeps the map up to date at little cost: the same map as `chart`, without charting anew when nothing can change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.deadends.atlas import Atlas, chart
from agent.store.trial import Trial
from search_spaces import Facts, SearchSpace
from search_spaces.condition import matches_all


class Charter:
    """The map of a growing study."""

    def __init__(self, space: SearchSpace, facts: Facts) -> None:
        self._space = space
        self._facts = facts
        self._seen: set[tuple[str, int]] = set()
        self._atlas = Atlas()
        self.ruled_out: Counter[str] = Counter()
        """Candidates that were not launched, by why, since this process began."""

    def chart(self, trials: Sequence[Trial], probes: Sequence[Trial]) -> Atlas:
        """Return the map of these trials, which must include all those of the call before."""
        fresh = [
            trial for trial in (*trials, *probes) if trial.counts and (trial.study, trial.number) not in self._seen
        ]
        self._seen.update((trial.study, trial.number) for trial in fresh)
        if any(self._may_change(trial) for trial in fresh):
            self._atlas = chart(trials, probes, self._space, self._facts)
        return self._atlas

    def _may_change(self, trial: Trial) -> bool:
        """A pass that lies in no dead end leaves every explanation as it was; anything else may change the map."""
        if not trial.is_measured:
            return True
        return any(matches_all(found.conditions, trial.work.resolved) for found in self._atlas.dead_ends)
