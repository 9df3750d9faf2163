"""The map as the search uses it: what does it say about an assignment?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.learn import learn
from agent.deadends.observation import observations
from agent.store.trial import Trial
from search_spaces import Facts, Scalar, SearchSpace


@dataclass(frozen=True, slots=True)
class Atlas:
    """All dead ends of a study. Immutable; a new trial gives a new atlas."""

    dead_ends: tuple[DeadEnd, ...] = ()

    @property
    def confirmed(self) -> tuple[DeadEnd, ...]:
        """The dead ends that block wherever they match."""
        return tuple(found for found in self.dead_ends if found.state is DeadEndState.CONFIRMED)

    def match(self, assignment: Mapping[str, Scalar]) -> DeadEnd | None:
        """Return a dead end that forbids launching the assignment, or None."""
        return next((found for found in self.dead_ends if found.blocks(assignment)), None)

    def supported_by(self, label: str) -> tuple[DeadEnd, ...]:
        """Return the dead ends that a trial is evidence for."""
        return tuple(found for found in self.dead_ends if label in found.support)


def chart(trials: Iterable[Trial], probes: Iterable[Trial], space: SearchSpace, facts: Facts) -> Atlas:
    """Return the map that the closed trials support."""
    return Atlas(learn(observations(trials, probes, space), space, facts))
