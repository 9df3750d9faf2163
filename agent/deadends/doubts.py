"""Whether a longer cause would explain nearly as much as the one that is to be believed.

`backend = a` may look certain because of one failure without `expert_parallel`, beside many with it. Where that one has
another explanation anyway, "only with `expert_parallel`" is as good: a cause that other failures need in any case, or
chance where it strikes often; and so it is where its message does not name the parameter that the others name. The
failures that the cause explains are asked one by one, since the odd one itself knows no longer cause.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.deadends.draws import draw_of, failures_of
from agent.deadends.evidence import Failed, ReasonEvidence
from agent.deadends.explain import Explanation
from agent.deadends.prior import LARGEST

MOST_LONGER = 0.02
"""How likely a longer one is, compared with a cause, up to which it is believed."""
LEAST_NEEDED = 0.5
"""Share of the likeliest explanation of a failure from which that cause may explain others, too."""
MOST_ASKED, MOST_OTHERS = 6, 32
"""Failures of a cause that are asked, and one for each further message; and others of which a cause is looked for."""

Covered = Callable[[Failed, tuple[int, ...]], int]
"""(failure, conditions) → bits of the failures that these explain."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A failure in whose view a cause is doubtful, with what may have caused it."""

    failed: Failed
    explanations: Sequence[Explanation]


def needed_anyway(
    seen: ReasonEvidence, others: int, explained: Callable[[Failed], Sequence[Explanation]], covered: Covered
) -> int:
    """Return the bits of the failures that the likely causes of others explain.

    Args:
        seen: The failures of a reason.
        others: Bits of those that need another cause in any case.
        explained: What may have caused a failure.
        covered: What a cause explains.
    """
    bits = 0
    for failed in heapq.nsmallest(MOST_OTHERS, failures_of(seen, others), key=draw_of):
        if others >> failed.index & 1:
            found = explained(failed)
            if found and found[0].share >= LEAST_NEEDED and len(found[0].numbers) <= LARGEST:
                its = covered(failed, found[0].numbers)
                bits, others = bits | its, others & ~its
    return bits


def doubt(
    cause: tuple[int, ...], seen: ReasonEvidence, bits: int, explained: Callable[[Failed], Sequence[Explanation]]
) -> Doubt | None:
    """Return the failure in whose view longer causes are likeliest, or None where none of those asked has doubts.

    Args:
        cause: Conditions, as the lexicon numbers them.
        seen: The failures of its reason.
        bits: Bits of those that it explains.
        explained: What may have caused a failure, where some of the others need no cause.
    """
    most, found = MOST_LONGER, None
    for failed in _asked(seen, bits):
        explanations = explained(failed)
        if (longer := _longer(cause, explanations)) > most:
            most, found = longer, Doubt(failed, explanations)
    return found


def _asked(seen: ReasonEvidence, bits: int) -> list[Failed]:
    asked = heapq.nsmallest(MOST_ASKED, failures_of(seen, bits), key=draw_of)
    known = {each.blames for each in asked}
    for names, those in seen.blaming.items():
        if names not in known and bits & those:
            asked.append(min(failures_of(seen, bits & those), key=draw_of))
    return asked


def _longer(cause: tuple[int, ...], explanations: Sequence[Explanation]) -> float:
    """Return how likely the likeliest longer cause is, compared with this one; 0 where nobody explains it by this."""
    mine = frozenset(cause)
    share = sum(each.share for each in explanations if mine == frozenset(each.numbers))
    longer = max((each.share for each in explanations if mine < frozenset(each.numbers)), default=0.0)
    return longer / share if share else 0.0
