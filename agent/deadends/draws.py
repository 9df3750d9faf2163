"""Which of many failures are looked at: a sample by a number drawn for each, which hangs on no order of the trials."""

from __future__ import annotations

from collections.abc import Iterator

from agent.deadends.bits import positions
from agent.deadends.evidence import Failed, ReasonEvidence


def failures_of(seen: ReasonEvidence, bits: int) -> Iterator[Failed]:
    """Yield the failures with these bits."""
    return (seen.failures[place] for place in positions(bits))


def draw_of(failed: Failed) -> tuple[int, str]:
    """Return the sort key by which failures are drawn: those with the least ones."""
    return failed.draw, failed.order[2]
