"""Random points of the space outside of all that is confirmed dead.

Of a space in which much is dead, nearly all points drawn blindly lie in some dead end. So each value is drawn among
those with which none is complete. What is drawn may still be refused: as launched already, or for what is suspected.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.propose.admission import barriers, confirmed_blocking, still_locked
from search_spaces import Assignment, Scalar

if TYPE_CHECKING:
    from agent.propose.history import History


@dataclass(frozen=True, slots=True)
class Choice:
    """One parameter's turn."""

    name: str
    values: Sequence[tuple[Scalar, int]]
    """Each with the bits of the dead ends that it leaves possible."""
    completed: int
    """Bits of the dead ends that say nothing about any later parameter."""

    def among(self, possible: int) -> list[tuple[Scalar, int]]:
        """Return the values that complete none of these dead ends."""
        return [each for each in self.values if not possible & each[1] & self.completed]


def random_points(history: History, generator: random.Random, number: int) -> Iterator[Assignment]:
    """Yield at most so many points, not in normal form and some more than once; fewer where draws end in dead ends."""
    of = (history.space, barriers(history), str(sorted(still_locked(history))))
    choices = history.memo.derived("choices", of, lambda: _choices(history))
    for _ in range(number):
        if (point := _drawn(choices, generator)) is not None:
            yield point


def _drawn(choices: Sequence[Choice], generator: random.Random) -> Assignment | None:
    possible, point = -1, {}
    for choice in choices:
        values = choice.among(possible)
        if not values:
            return None
        point[choice.name], left = generator.choice(values)
        possible &= left
    return point


def _choices(history: History) -> list[Choice]:
    """Return the parameters in the order of the space."""
    space, locked, blocking = history.space, still_locked(history), confirmed_blocking(history)
    names = list(space.parameters)
    last = [max(map(names.index, found.asked_about), default=-1) for found in history.atlas.confirmed]
    return [
        Choice(
            name,
            [(each, blocking.possible(name, each)) for each in parameter.domain if (name, repr(each)) not in locked],
            sum(1 << index for index, its_last in enumerate(last) if its_last == place),
        )
        for place, (name, parameter) in enumerate(space.parameters.items())
    ]
