"""What is suspected of failures with the same likeliest cause, weighed against chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.deadends.dead_end import DeadEnd
from agent.deadends.entries import suspects_of
from agent.deadends.suspicion import Suspicion

Weighed = tuple[Suspicion, Callable[[], bool] | None]
"""A suspicion, and what says whether chance is still as certain beside it; None where it is not certain."""


@dataclass
class Suspected:
    """One suspected dead end.

    While nothing else bears on it, further passes only make chance a little less likely. Where chance was certain, a
    look at the place where it is likeliest says that it still is.
    """

    weigh: Callable[[], Weighed]
    describe: Callable[[Suspicion], DeadEnd]
    """Writes its entry."""
    suspicion: Suspicion = field(init=False)
    entry: DeadEnd = field(init=False)

    def __post_init__(self) -> None:
        self.suspicion, self._is_still_certain = self.weigh()
        self.entry = self.describe(self.suspicion)

    def is_weighed_anew(self) -> bool:
        """Weigh it with what passed since; return whether that makes any difference."""
        if self._is_still_certain is not None and self._is_still_certain():
            return False
        before = self.suspicion
        self.suspicion, self._is_still_certain = self.weigh()
        if (suspects := suspects_of(self.suspicion)) != self.entry.suspects:
            self.entry = self.entry.model_copy(update={"suspects": suspects})
        return self.suspicion != before
