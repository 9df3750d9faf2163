"""Which unexplained failures are weighed one by one: all of a short study, of a long one so many of each look.

What nothing confirms stays unexplained, and a long study may have thousands of such failures that look alike: limits of
memory, for example. To weigh each of them for every trial would cost more and more. So of those that look alike a fixed
draw is weighed, and then those that no explanation weighed so far covers, so that a second, rarer cause is not missed
among many failures of a common one. The draw depends on the assignments alone: not on the order of the trials, and
hardly on how many there are, so that what is suspected does not jump about. What is left is said to have the cause that
covers it; what none of the weighed explanations covers is in no entry of the map until more is explained.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.deadends.bits import positions
from agent.deadends.draws import draw_of
from agent.deadends.evidence import Failed

MOST_ALIKE = 16
"""Failures of one look that are weighed in any case, and as many again that nothing weighed so far covers."""

Look = tuple[str, frozenset[str]]
"""Signature, and the parameters that the message accuses."""


@dataclass
class Turns:
    """Hands out failures to be weighed, in their order, and those for which there is no turn to what covers them."""

    covered: Callable[[Failed, tuple[int, ...]], int]
    """(failure, conditions of its likeliest explanation) → bits of the failures of its reason that this explains."""
    most: int = field(default_factory=lambda: MOST_ALIKE)
    _further: dict[Look, int] = field(default_factory=lambda: defaultdict(int))
    _noted: set[tuple[Look, tuple[int, ...]]] = field(default_factory=set)
    """The likeliest explanations of each look of which not all are weighed."""
    _causes: dict[tuple[Look, int], tuple[int, ...]] = field(default_factory=dict)
    """The failures of such a look that one of these covers → the first that does."""
    _crowded: set[Look] = field(default_factory=set)

    def weighed(self, failures: Sequence[Failed]) -> Iterator[Failed]:
        """Yield the failures to be weighed; what comes of each is to be noted before the next one is asked for."""
        by_look: dict[Look, list[Failed]] = defaultdict(list)
        for failed in failures:
            by_look[look_of(failed)].append(failed)
        self._crowded = {look for look, group in by_look.items() if len(group) > self.most}
        if not self._crowded:
            yield from failures
            return
        drawn = {
            failed.index
            for look, group in by_look.items()
            for failed in (heapq.nsmallest(self.most, group, key=draw_of) if look in self._crowded else group)
        }
        yield from (failed for failed in failures if failed.index in drawn)
        for failed in failures:
            if failed.index not in drawn and self.cause_of(failed) is None and self._may_be_weighed(failed):
                yield failed

    def note(self, failed: Failed, cause: tuple[int, ...] | None) -> None:
        """Take in the likeliest explanation of a failure that was weighed, or that it has none."""
        look = look_of(failed)
        if look in self._crowded and cause is not None and (look, cause) not in self._noted:
            self._noted.add((look, cause))
            for index in positions(self.covered(failed, cause)):
                self._causes.setdefault((look, index), cause)

    def cause_of(self, failed: Failed) -> tuple[int, ...] | None:
        """Return the first likeliest explanation of another failure of its look that covers this one, or None."""
        return self._causes.get((look_of(failed), failed.index))

    def _may_be_weighed(self, failed: Failed) -> bool:
        look = look_of(failed)
        self._further[look] += 1
        return self._further[look] <= self.most


def look_of(failed: Failed) -> Look:
    """Return what a failure looks like and whom it accuses."""
    return failed.signature, failed.blames
