"""Dead ends that a test takes as known."""

from __future__ import annotations

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.reasons import REASONS, Reason
from runners import Rung
from search_spaces import Condition


def dead(*conditions: Condition, reason: Reason = Reason.TOPOLOGY_UNSUPPORTED) -> DeadEnd:
    """Return a confirmed dead end of launches."""
    return DeadEnd(
        id="D1",
        conditions=conditions,
        reason=reason,
        policy=REASONS[reason].policy,
        state=DeadEndState.CONFIRMED,
        rung=Rung.FULL,
        suspects=(),
        observed={},
        scope={},
        support=("#0",),
    )
