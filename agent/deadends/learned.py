"""What a lesson comes to."""

from __future__ import annotations

from dataclasses import dataclass

from agent.deadends.dead_end import DeadEnd
from agent.deadends.suspicion import Suspicion


@dataclass(frozen=True, slots=True)
class Learned:
    """What the failures of one reason teach."""

    confirmed: tuple[DeadEnd, ...] = ()
    suspected: tuple[DeadEnd, ...] = ()
    flaky: tuple[DeadEnd, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    """One for each suspected dead end, in the same order: what an experiment needs to know."""
    edges: tuple[DeadEnd, ...] = ()
    """Suspected: confirmed ones whose limits may begin earlier."""
