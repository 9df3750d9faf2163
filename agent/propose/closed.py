"""What the closed trials of a study say: made once, and shared by all that is proposed until another one is closed.

With many slots one proposal follows the other without anything new to learn from. It is a cache and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agent.propose.prepared import facts_of
from agent.store.trial import Trial

if TYPE_CHECKING:
    from agent.propose.history import History

R = TypeVar("R")
PARTS = ("trials", "probes", "checks")


def of_closed(history: History, name: str, make: Callable[[], R]) -> R:
    """Return what is made of the closed trials of a history and its map; made anew when another trial is closed.

    Args:
        history: The study; what is made may look at nothing else of it that changes, open trials least of all.
        name: Of what is made.
        make: Makes it. Nobody may change what it returns.
    """
    lists = {part: getattr(history, part) for part in PARTS}
    numbers = [history.memo.fold(f"ended {part}", trials, Counter, _add)[True] for part, trials in lists.items()]
    first = (trials[0] if trials else None for trials in lists.values())
    of = (*numbers, *first, history.atlas, history.space, facts_of(history))
    return history.memo.derived(f"{name} evenly" if history.is_even else name, of, make)


def _add(found: Counter[bool], trial: Trial) -> None:
    found[trial.is_closed] += 1
