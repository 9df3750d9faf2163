"""The positions of the bits that are set in an integer."""

from __future__ import annotations

from collections.abc import Iterator


def positions(bits: int) -> Iterator[int]:
    """Yield them in ascending order: the work grows with how many are set, not with how long the integer is."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
