"""Which of some dead ends forbid an assignment: a few operations on integers, however many there are.

A search asks this of thousands of candidates for each launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.deadends.dead_end import DeadEnd
from search_spaces import Scalar


class Blocking:
    """Dead ends, by the values of an assignment that leave them possible."""

    def __init__(self, dead_ends: Sequence[DeadEnd]) -> None:
        self._dead_ends = dead_ends
        self._all = (1 << len(dead_ends)) - 1
        self._names = tuple(dict.fromkeys(name for found in dead_ends for name in found.asked_about))
        self._possible: dict[tuple[str, Scalar], int] = {}

    def place(self, assignment: Mapping[str, Scalar]) -> int | None:
        """Return the place of the first dead end that forbids launching the assignment, or None."""
        possible = self._all
        for name in self._names:
            if not possible:
                return None
            possible &= self.possible(name, assignment[name])
        return (possible & -possible).bit_length() - 1 if possible else None

    def possible(self, name: str, value: Scalar) -> int:
        """Return the bits of the dead ends that may block an assignment with this value."""
        key = (name, value)
        if key not in self._possible:
            bits = (1 << place for place, found in enumerate(self._dead_ends) if found.may_block(name, value))
            self._possible[key] = sum(bits)
        return self._possible[key]
