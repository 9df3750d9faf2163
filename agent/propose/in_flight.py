"""What is running now, and what that means for the next proposal.

No two launches at the same time run the same assignment, repeats included: at the same moment they would share what
disturbs the node. What is still to be measured counts as measured as expected (`improve`), so that several slots try
different ideas.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agent.effects import Rewrites, rewritten
from agent.propose import tallies
from agent.store.trial import Trial, Work
from runners import Rung
from search_spaces import Assignment, Facts, SearchSpace, assignment_key

if TYPE_CHECKING:
    from agent.propose.history import History

RUNS_NOW = "running now"


@dataclass(frozen=True)
class InFlight:
    """The open trials of a study.

    It knows nothing of the history that has it: two that know each other stay in memory until the garbage collector
    looks, and each history of a long study has lists of thousands of trials.
    """

    launches: Sequence[Trial]
    probes: Sequence[Trial]
    checks: Sequence[Trial]
    space: SearchSpace
    facts: Facts
    rewrites: Rewrites
    """Values that the engine was seen to replace."""
    measured: Container[str]
    """Keys of what was measured."""

    @classmethod
    def of(cls, history: History) -> InFlight:
        """Return what is in flight in a study."""
        launches, probes, checks = tallies.open_trials(history)
        return cls(launches, probes, checks, history.space, history.facts, history.silent_rewrites, history.measured)

    @cached_property
    def number(self) -> int:
        """How many launches, probes and checks are running."""
        return len(self.launches) + len(self.probes) + len(self.checks)

    def holds(self, work: Work) -> bool:
        """Return whether a piece of work would launch what is launched at this moment."""
        return self.number > 0 and work.rung is Rung.FULL and self.key_of(work.resolved) in self._keys

    @cached_property
    def pending(self) -> list[Assignment]:
        """Assignments that will be measured soon: those of launches, and what a cheaper rung is asked about first."""
        asked = [check for check in self.checks if check.work.rung is not Rung.PROBE]
        points = [self._as_it_runs(trial.work.resolved) for trial in (*self.launches, *asked)]
        found = {assignment_key(point): point for point in points}
        return [point for key, point in found.items() if key not in self.measured]

    def key_of(self, assignment: Assignment) -> str:
        """Return the key of what an assignment runs as, by all that was seen by now.

        Since a launch began, another one may have shown that the engine replaces one of its values.
        """
        return assignment_key(self._as_it_runs(assignment))

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.key_of(trial.work.resolved) for trial in self.launches)

    def _as_it_runs(self, assignment: Assignment) -> Assignment:
        point, replaced = rewritten(assignment, self.rewrites)
        return self.space.normalise(point, self.facts) if replaced else point
