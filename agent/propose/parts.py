"""The lists of trials of a history, and the same sum over each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent.store.trial import Trial

if TYPE_CHECKING:
    from agent.propose.history import History

PARTS = ("trials", "probes", "checks")


def folded(
    history: History,
    name: str,
    start: Callable[[], Any],
    add: Callable[[Any, Trial], object],
    *,
    closed_only: bool = False,
) -> list[Any]:
    """Return the same sum over launches, probes and checks, each on its own (`memo.Memo.fold`)."""
    fold = history.memo.fold
    return [fold(f"{name} {part}", getattr(history, part), start, add, closed_only=closed_only) for part in PARTS]
