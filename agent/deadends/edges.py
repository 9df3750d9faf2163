"""How far a limit is believed: not as far as failures reach that may have had another cause, or none.

`nccl_max_ctas ≥ 16` failed seven times, five of them at 32: the two at 16 may be chance, and then 16 works. A limit
that begins at 32 explains all but those. So limits are weighed by the failures that lie between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agent.deadends.chance import CHANCE, NAMES_ITS_CAUSE
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.explain import Often
from agent.deadends.prior import OTHER_CAUSE

MOST_OTHERWISE = 0.02
"""How likely the failures at the edge all have other causes, up to which a limit is believed."""
MOST_CHANCE = 0.002
"""Odds of chance up to which it is. Less than elsewhere: one launch that differs from these failures is the answer."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A limit that may begin earlier than is believed."""

    numbers: tuple[int, ...]
    """Conditions, as the lexicon numbers them, with the limits as early as a failure was seen."""
    bits: int
    """Of the failures that only these limits explain."""


def still_open(edges: Iterable[Edge], explained: Iterable[tuple[tuple[int, ...], int]]) -> Iterator[Edge]:
    """Yield the edges at which a failure has no other explanation.

    Args:
        edges: All of them.
        explained: What is confirmed: conditions, and the bits of the failures that they explain.
    """
    known = 0
    for _, bits in explained:
        known |= bits
    for edge in edges:
        if left := edge.bits & ~known:
            yield Edge(edge.numbers, left)


@dataclass(frozen=True)
class Limits:
    """Draws the limits of a cause back to where failures enough lie at them or beyond.

    Those of reasons that are dead at once stay: they know no chance.
    """

    failed: Failed
    evidence: Evidence
    often: Often
    """Failures that hardly need the same cause."""
    chance: Callable[[int, bool], float]
    """(bits of failures, whether they name the parameter) → odds that they were chance and not the cause."""

    def drawn_back(self, numbers: tuple[int, ...], bits: int) -> tuple[int, ...]:
        """Return the conditions with the limits that are believed.

        Args:
            numbers: Conditions that the failure satisfies, as the lexicon numbers them.
            bits: Failures that look the same and that the conditions explain.
        """
        if CHANCE[self.failed.failure.policy] == 0.0:
            return numbers
        kept = []
        for number in numbers:
            kept.append(self._believed(number, bits))
            bits &= self._failures_with(kept[-1])
        return tuple(kept)

    def _believed(self, number: int, bits: int) -> int:
        blaming = self.evidence.reasons[self.failed.failure.reason].blaming
        naming = sum(bit for names, bit in blaming.items() if self.evidence.lexicon.parameter(number) in names)
        while (later := self.evidence.lexicon.later(number)) is not None:
            beyond = bits & ~self._failures_with(later)
            is_named = not beyond & ~naming
            if self._otherwise(beyond, naming) <= MOST_OTHERWISE and self.chance(beyond, is_named) <= MOST_CHANCE:
                break
            number = later
        return number

    def _failures_with(self, number: int) -> int:
        return self.evidence.reasons[self.failed.failure.reason].satisfying.get(number, 0)

    def _otherwise(self, bits: int, naming: int) -> float:
        """Return how likely all of these failures have other causes, or none: hardly, where they name the parameter."""
        frequent, named = (bits & self.often.bits).bit_count(), (bits & naming).bit_count()
        rare = bits.bit_count() - frequent
        return float(self.often.rate**frequent * OTHER_CAUSE**rare * NAMES_ITS_CAUSE**named)
