"""What is running now, and what that means for the next proposal.

No two launches at the same time run the same assignment, repeats included: at the same moment they would share what
disturbs the node. What is still to be measured counts as measured as expected (`improve`), so that several slots try
different ideas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agent.effects import rewritten
from agent.propose import tallies
from agent.store.trial import Trial, Work
from runners import Rung
from search_spaces import Assignment, assignment_key

if TYPE_CHECKING:
    from agent.propose.history import History

RUNS_NOW = "running now"


@dataclass(frozen=True)
class InFlight:
    """The open trials of a study."""

    history: History

    @cached_property
    def number(self) -> int:
        """How many launches, probes and checks are running."""
        return sum(map(len, self._open))

    def holds(self, work: Work) -> bool:
        """Return whether a piece of work would launch what is launched at this moment."""
        return self.number > 0 and work.rung is Rung.FULL and self.key_of(work.resolved) in self._keys

    @cached_property
    def pending(self) -> list[Assignment]:
        """Assignments that will be measured soon: those of launches, and what a cheaper rung is asked about first."""
        launches, _, checks = self._open
        asked = [check for check in checks if check.work.rung is not Rung.PROBE]
        points = [self._as_it_runs(trial.work.resolved) for trial in (*launches, *asked)]
        found = {assignment_key(point): point for point in points}
        return [point for key, point in found.items() if key not in self.history.measured]

    def key_of(self, assignment: Assignment) -> str:
        """Return the key of what an assignment runs as, by all that was seen by now.

        Since a launch began, another one may have shown that the engine replaces one of its values.
        """
        return assignment_key(self._as_it_runs(assignment))

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.key_of(trial.work.resolved) for trial in self._open[0])

    def _as_it_runs(self, assignment: Assignment) -> Assignment:
        space, facts = self.history.space, self.history.facts
        point, replaced = rewritten(assignment, self.history.silent_rewrites)
        return space.normalise(point, facts) if replaced else point

    @cached_property
    def _open(self) -> list[list[Trial]]:
        """Launches, probes and checks."""
        return tallies.open_trials(self.history)
