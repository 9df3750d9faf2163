"""What a growing study adds up to, kept from one proposal to the next: a long one costs no more than a short one.

A closed trial never changes. So what was added up over the closed trials at the beginning of a list holds for good, and
only what comes after them is looked at again. It is a cache and nothing else: a fresh memo gives the same answers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, MutableMapping, MutableSequence, MutableSet, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agent.store.trial import Trial

R = TypeVar("R")
S = TypeVar("S", bound=MutableMapping[Any, Any] | MutableSequence[Any] | MutableSet[Any])


@dataclass(slots=True)
class _Kept:
    """A sum over the closed trials at the beginning of a list."""

    state: Any
    number: int = 0
    first: Trial | None = None
    last: Trial | None = None
    asked: Sequence[Trial] = ()
    """The list that was asked about last."""
    answer: Any = None
    """What adding all of it came to."""
    is_lent: bool = False
    """Whether the state itself was handed out: it is copied before anything is added to it."""

    def is_of(self, trials: Sequence[Trial]) -> bool:
        """Return whether it is a sum over the beginning of this list: the very trials, as they were closed."""
        if self.number == 0:
            return True
        return self.number <= len(trials) and trials[0] is self.first and trials[self.number - 1] is self.last

    def take_closed(self, trials: Sequence[Trial], add: Callable[[Any, Trial], object]) -> None:
        """Add the closed trials that come next."""
        while self.number < len(trials) and trials[self.number].is_closed:
            if self.is_lent:
                self.state, self.is_lent = copy.copy(self.state), False
            self.last = trials[self.number]
            self.first = self.first or self.last
            add(self.state, self.last)
            self.number += 1


class Memo:
    """Sums over lists of trials, each by a name of its own."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._derived: dict[str, tuple[tuple[object, ...], Any]] = {}

    def derived(self, name: str, of: Sequence[object], make: Callable[[], R]) -> R:
        """Return what is made of some objects; made anew only where they are not the very same as the last time.

        Args:
            name: Of what is made.
            of: All that it depends on: objects that do not change, and numbers.
            make: Makes it.
        """
        kept = self._derived.get(name)
        if kept is None or len(kept[0]) != len(of) or not all(map(_is_same, kept[0], of)):
            kept = self._derived[name] = (tuple(of), make())
        found: R = kept[1]
        return found

    def fold(
        self,
        name: str,
        trials: Sequence[Trial],
        start: Callable[[], S],
        add: Callable[[S, Trial], object],
        *,
        closed_only: bool = False,
    ) -> S:
        """Return what adding all trials to the start comes to, in their order. The caller may keep it, not change it.

        Args:
            name: Of this sum; always with the same start and the same way to add.
            trials: The list, in which a trial is replaced when it is closed and never afterwards.
            start: An empty container.
            add: Puts one trial into the container. What is in it already must be replaced, not changed in place:
                containers are copied without their contents.
            closed_only: Whether a trial that runs adds nothing. Then nothing is copied while none is closed.
        """
        kept = self._kept.get(name)
        if kept is None or not kept.is_of(trials):
            kept = self._kept[name] = _Kept(start())
        if trials and trials is kept.asked:  # a tuple, of which nothing changes
            known: S = kept.answer
            return known
        kept.take_closed(trials, add)
        rest = [trial for trial in trials[kept.number :] if trial.is_closed or not closed_only]
        kept.is_lent |= not rest
        found: S = copy.copy(kept.state) if rest else kept.state
        for trial in rest:
            add(found, trial)
        kept.asked, kept.answer = (trials, found) if isinstance(trials, tuple) else ((), None)
        return found


def _is_same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, int | str) and one == other)
