"""The map as the search uses it: what does it say about an assignment?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agent.deadends.claims import reaches
from agent.deadends.contradictions import Contradiction, Weightless
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.observation import Observation
from agent.deadends.strikes import is_within
from agent.deadends.suspicion import Suspicion
from search_spaces import Scalar


@dataclass(frozen=True)
class Atlas:
    """All dead ends of a study. Immutable; a new trial gives a new atlas."""

    dead_ends: tuple[DeadEnd, ...] = ()
    """Confirmed ones first."""
    suspicions: tuple[Suspicion, ...] = ()
    """What is not explained yet, for the experiments that would."""
    contradictions: tuple[Contradiction, ...] = ()
    """Where two rungs disagreed about an assignment."""
    weightless: Weightless = frozenset()
    """(rung, reason) of failures that are not believed: contradicted, or of a rung at which nothing passed yet."""
    missed: Weightless = frozenset()
    """(rung, reason) of failures that a rung claims to find, and missed."""

    @cached_property
    def confirmed(self) -> tuple[DeadEnd, ...]:
        """The dead ends that block wherever they match."""
        return self.in_state(DeadEndState.CONFIRMED)

    @cached_property
    def suspected(self) -> tuple[DeadEnd, ...]:
        """Those that block only what equals the failure in everything that may be the cause."""
        return self.in_state(DeadEndState.SUSPECTED)

    @cached_property
    def stale(self) -> tuple[DeadEnd, ...]:
        """Inherited dead ends that are to be re-checked."""
        return self.in_state(DeadEndState.STALE)

    def in_state(self, *states: DeadEndState) -> tuple[DeadEnd, ...]:
        """Return the dead ends in one of these states."""
        return tuple(found for found in self.dead_ends if found.state in states)

    def find(self, wanted: str) -> DeadEnd | None:
        """Return the dead end of this id, or None."""
        return self._by_id.get(wanted)

    @cached_property
    def _by_id(self) -> dict[str, DeadEnd]:
        return {found.id: found for found in reversed(self.dead_ends)}

    def match(self, assignment: Mapping[str, Scalar]) -> DeadEnd | None:
        """Return a dead end that forbids launching the assignment, or None."""
        return next((found for found in self.dead_ends if found.blocks(assignment)), None)

    def match_confirmed(self, assignment: Mapping[str, Scalar], about: str = "") -> DeadEnd | None:
        """Return a confirmed dead end that the assignment lies in, or None: only these bind an experiment.

        The one that the experiment is `about` (its id) does not bind it.
        """
        return next((found for found in self.confirmed if found.id != about and found.blocks(assignment)), None)

    def supported_by(self, label: str) -> tuple[DeadEnd, ...]:
        """Return the dead ends that a trial is evidence for."""
        return tuple(found for found in self.dead_ends if label in found.support)

    def edges_of(self, confirmed: DeadEnd) -> tuple[DeadEnd, ...]:
        """Return the suspected dead ends which say that a confirmed one begins earlier, and nothing else."""
        open_questions = {why.failed.seen.label for why in self.suspicions}
        wider = (found for found in self.in_state(DeadEndState.SUSPECTED) if _widens(found, confirmed))
        return tuple(found for found in wider if open_questions.isdisjoint(found.support))

    def contradicted_by(self, seen: Observation) -> tuple[DeadEnd, ...]:
        """Return the confirmed dead ends in which this trial passed: it refutes them."""
        if not seen.passed:
            return ()
        reached = (found for found in self.confirmed if reaches(seen.rung, found.rung))
        return tuple(found for found in reached if found.covers(seen.assignment, seen.visible))


def _widens(wide: DeadEnd, narrow: DeadEnd) -> bool:
    """Return whether two dead ends of a reason are about the same parameters, and one takes in the other."""
    pairs = list(zip(wide.conditions, narrow.conditions, strict=False))
    is_alike = wide.reason is narrow.reason and len(wide.conditions) == len(narrow.conditions) == len(pairs)
    return is_alike and all(mine.parameter == its.parameter and is_within(its, mine) for mine, its in pairs)
