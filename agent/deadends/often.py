"""Which failures hardly need a cause of their own where the one of another failure does not explain them."""

from __future__ import annotations

from agent.deadends.chance import Chance
from agent.deadends.evidence import ReasonEvidence
from agent.deadends.explain import Often
from agent.deadends.prior import OTHER_CAUSE

UNNAMED = 0.3
"""How likely a failure that looks the same, but does not name a parameter as the other one does, has another cause."""


def often_of(chance: Chance, alike: int, seen: ReasonEvidence) -> Often:
    """Return those where chance strikes, as far as it was seen, and those that do not name what a failure names.

    Args:
        chance: Weighs chance against the causes of that failure.
        alike: Bits of the failures that look the same and that no confirmed dead end explains.
        seen: The failures of its reason.
    """
    bits, rate = chance.often(alike)
    unnamed = alike & ~seen.blaming[chance.failed.blames]
    if unnamed:
        bits, rate = bits | unnamed, max(rate, UNNAMED)
    return Often(bits, rate) if rate > OTHER_CAUSE else Often()
