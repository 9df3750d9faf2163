"""Possible causes of one failure, prepared so that a point is weighed in a few operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from search_spaces import Conjunction, Scalar


class Causes:
    """Conjunctions of conditions, each with its share.

    Args:
        weighed: What may be the cause, and how likely it is.
    """

    def __init__(self, weighed: Sequence[tuple[Conjunction, float]]) -> None:
        numbers = {each: index for index, each in enumerate(dict.fromkeys(c for one, _ in weighed for c in one))}
        self._needed = [(sum(1 << numbers[each] for each in conditions), share) for conditions, share in weighed]
        self._conditions = [(condition, 1 << number) for condition, number in numbers.items()]
        self._names = tuple({condition.parameter: None for condition in numbers})
        self._broken: dict[tuple[str, str], int] = {}

    def share(self, point: Mapping[str, Scalar]) -> float:
        """Return the share of the causes that a point meets."""
        broken = self._broken_at(point)
        return sum(share for needed, share in self._needed if not needed & broken)

    def _broken_at(self, point: Mapping[str, Scalar]) -> int:
        """Return the conditions that a point does not meet, a bit each."""
        broken = 0
        for name in self._names:
            broken |= self._broken_by(name, point[name])
        return broken

    def _broken_by(self, name: str, value: Scalar) -> int:
        key = (name, repr(value))
        if key not in self._broken:
            own = ((condition, bit) for condition, bit in self._conditions if condition.parameter == name)
            self._broken[key] = sum(bit for condition, bit in own if not condition.matches({name: value}))
        return self._broken[key]
