"""The environment that a study runs in, from one change of it to the next."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from agent.deadends.dead_end import DeadEnd
from runners import Frozen


class Epoch(Frozen):
    """A time in which the facts stayed the same. What was measured in another one is kept apart."""

    facts: Mapping[str, object]
    inherited: tuple[DeadEnd, ...] = ()
    """Dead ends taken over when it began: from earlier studies, or from the epoch before."""
    began_at: datetime
    changes: tuple[str, ...] = ()
    """What differs from the epoch before, in words, where it makes a difference."""
