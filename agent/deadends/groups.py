"""The failures beside those of a cause, by what else may have caused several of them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from agent.deadends.chance import OUT_OF_THE_QUESTION
from agent.deadends.draws import draw_of, failures_of
from agent.deadends.evidence import Failed, ReasonEvidence
from agent.deadends.explain import Explanation
from agent.deadends.likelihood import Group
from agent.deadends.prior import NEW_CAUSE, size_prior

MOST_ASKED = 16
"""Failures of which it is asked what may have caused them. Where more need causes of their own, chance is likelier."""


def groups(
    seen: ReasonEvidence,
    bits: int,
    by_chance: int,
    explained: Callable[[Failed], Sequence[Explanation]],
    covered: Callable[[Failed, tuple[int, ...]], int],
) -> Iterator[Group]:
    """Yield the failures by what would explain several of them, with how likely there is such a cause.

    Args:
        seen: The failures of a reason.
        bits: Of those that are looked at.
        by_chance: Bits of those that certainly were chance. A cause of others may explain them, too.
        explained: What may have caused a failure.
        covered: Bits of the failures that a cause of a failure explains.
    """
    asked = heapq.nsmallest(MOST_ASKED, failures_of(seen, bits & ~by_chance), key=draw_of)
    found: list[Group] = []
    for failed in sorted(asked, key=attrgetter("order")):
        own = bits & 1 << failed.index
        if own and (causes := explained(failed)):
            group = bits & covered(failed, causes[0].numbers) | own
            prior = min(1.0, NEW_CAUSE * size_prior(causes[0].numbers) / causes[0].share)
            found.append(Group(group, math.log(prior)))
            bits &= ~group
    if bits:
        yield Group(bits, OUT_OF_THE_QUESTION, is_each=True)
    yield from found
