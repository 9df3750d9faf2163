"""The map as the search uses it: what does it say about an assignment?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.learn import Learned, Suspicion
from search_spaces import Scalar


@dataclass(frozen=True, slots=True)
class Atlas:
    """All dead ends of a study. Immutable; a new trial gives a new atlas."""

    dead_ends: tuple[DeadEnd, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    """What is not explained yet, for the experiments that would."""

    @classmethod
    def of(cls, learned: Sequence[Learned]) -> Atlas:
        """Return the map of what each reason taught: confirmed dead ends first."""
        dead_ends = [found for each in learned for found in each.confirmed]
        dead_ends += [found for each in learned for found in (*each.suspected, *each.flaky)]
        return cls(tuple(dead_ends), tuple(found for each in learned for found in each.suspicions))

    @property
    def confirmed(self) -> tuple[DeadEnd, ...]:
        """The dead ends that block wherever they match."""
        return tuple(found for found in self.dead_ends if found.state is DeadEndState.CONFIRMED)

    def match(self, assignment: Mapping[str, Scalar]) -> DeadEnd | None:
        """Return a dead end that forbids launching the assignment, or None."""
        return next((found for found in self.dead_ends if found.blocks(assignment)), None)

    def match_confirmed(self, assignment: Mapping[str, Scalar]) -> DeadEnd | None:
        """Return a confirmed dead end that the assignment lies in, or None: only these bind an experiment."""
        return next((found for found in self.confirmed if found.blocks(assignment)), None)

    def supported_by(self, label: str) -> tuple[DeadEnd, ...]:
        """Return the dead ends that a trial is evidence for."""
        return tuple(found for found in self.dead_ends if label in found.support)
