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
        history = self.history
        return sum(not trial.is_closed for trial in (*history.trials, *history.probes, *history.checks))

    def holds(self, work: Work) -> bool:
        """Return whether a piece of work would launch what is launched at this moment."""
        return self.number > 0 and work.rung is Rung.FULL and self.key_of(work.resolved) in self._keys

    @cached_property
    def pending(self) -> list[Assignment]:
        """Assignments that will be measured soon: those of launches, and what a cheaper rung is asked about first."""
        asked = [check for check in self._open(self.history.checks) if check.work.rung is not Rung.PROBE]
        points = [self._as_it_runs(trial.work.resolved) for trial in (*self._open(self.history.launches), *asked)]
        found = {assignment_key(point): point for point in points}
        return [point for key, point in found.items() if key not in self.history.measured]

    def key_of(self, assignment: Assignment) -> str:
        """Return the key of what an assignment runs as, by all that was seen by now.

        Since a launch began, another one may have shown that the engine replaces one of its values.
        """
        return assignment_key(self._as_it_runs(assignment))

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.key_of(trial.work.resolved) for trial in self._open(self.history.launches))

    def _as_it_runs(self, assignment: Assignment) -> Assignment:
        space, facts = self.history.space, self.history.facts
        point, replaced = rewritten(assignment, self.history.silent_rewrites)
        return space.normalise(point, facts) if replaced else point

    def _open(self, trials: tuple[Trial, ...]) -> list[Trial]:
        return [trial for trial in trials if not trial.is_closed] if self.number else []
