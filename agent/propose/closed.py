"""What the closed trials of a study say: made once, and shared by all that is proposed until another one is closed.

With many slots one proposal follows the other without anything new to learn from. It is a cache and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from agent.propose.parts import PARTS
from agent.propose.prepared import facts_of
from agent.store.trial import Trial

if TYPE_CHECKING:
    from agent.propose.history import History

R = TypeVar("R")


def of_closed(history: History, name: str, make: Callable[[], R], also: Sequence[object] = ()) -> R:
    """Return what is made of the closed trials of a history and its map; made anew when another trial is closed.

    Args:
        history: The study; what is made may look at nothing else of it that changes, open trials least of all.
        name: Of what is made.
        make: Makes it. Nobody may change what it returns.
        also: What else it depends on: objects that do not change, and texts.
    """
    first = (trial for part in PARTS for trial in getattr(history, part)[:1])
    of = (*(num_ended(history, part) for part in PARTS), *first, history.atlas, history.space, facts_of(history), *also)
    return history.memo.derived(f"{name} evenly" if history.is_even else name, of, make)


def of_measured(history: History, name: str, make: Callable[[], R], also: Sequence[object] = ()) -> R:
    """Return what is made of the measured launches of a history alone; made anew when another one is measured.

    Args:
        history: The study; what is made may look at nothing else of it that changes.
        name: Of what is made.
        make: Makes it. Nobody may change what it returns.
        also: What else it depends on: objects that do not change, and texts.
    """
    if len(history.settings.goals) > 1:  # they are weighed anew for each launch
        return of_closed(history, name, make, also)
    measured = int(history.memo.fold("num measured", history.trials, Counter, _add_measured)[True])
    return history.memo.derived(name, (measured, *history.trials[:1], history.space, facts_of(history), *also), make)


def num_ended(history: History, part: str) -> int:
    """Return how many trials of one list of a history are closed, whatever came of them."""
    return int(history.memo.fold(f"ended {part}", getattr(history, part), Counter, _add)[True])


def _add(found: Counter[bool], trial: Trial) -> None:
    found[trial.is_closed] += 1


def _add_measured(found: Counter[bool], trial: Trial) -> None:
    found[trial.is_measured] += 1
