"""How much launches of one and the same assignment differ, from launch to launch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import Field

from runners import Frozen

ASSERTED_FREEDOM = 10.0
"""How many repeats a spread counts for that the user states instead of measuring it."""


class Spread(Frozen):
    """Variance of the logarithm of the objective between launches, and how many repeats it rests on."""

    variance: float = Field(ge=0)
    freedom: float = Field(ge=0)
    """Degrees of freedom: launches beyond the first one of each assignment."""
    origin: str = ""
    """Where it was measured, in words; empty for the study's own repeats."""

    @property
    def sd(self) -> float:
        """Standard deviation; as it is one of logarithms, nearly a share of the objective."""
        return math.sqrt(self.variance)

    def __str__(self) -> str:
        return f"{self.sd:.1%} (standard deviation; {self.freedom:.0f} repeats, from {self.origin or 'this study'})"


def asserted(share: float) -> Spread:
    """Return the spread that the user states, as a share of the objective."""
    return Spread(variance=share**2, freedom=ASSERTED_FREEDOM, origin="the specification")


class Launches(NamedTuple):
    """What the launches of one assignment add to a spread, in logarithms of the objective."""

    number: int
    middle: float
    squares: float
    """Sum of the squared distances from the middle."""


def launches_of(values: Sequence[float]) -> Launches:
    """Return what launches with these values add to a spread."""
    logs = [math.log(value) for value in values]
    middle = math.fsum(logs) / len(logs)
    return Launches(len(logs), middle, math.fsum((log - middle) ** 2 for log in logs))


def spread_of(groups: Iterable[Sequence[float]]) -> Spread:
    """Return the spread within groups of values, each those of one assignment's launches."""
    return spread_within(map(launches_of, groups))


def spread_within(groups: Iterable[Launches]) -> Spread:
    """Return the same where it is known what each group adds."""
    squares = freedom = 0.0
    for group in groups:
        squares += group.squares
        freedom += group.number - 1
    return Spread(variance=squares / freedom if freedom else 0.0, freedom=freedom)


def pooled(spreads: Iterable[Spread]) -> Spread:
    """Return one spread that rests on all repeats together."""
    found = [spread for spread in spreads if spread.freedom > 0]
    freedom = math.fsum(spread.freedom for spread in found)
    squares = math.fsum(spread.variance * spread.freedom for spread in found)
    origins = dict.fromkeys(spread.origin for spread in found if spread.origin)
    return Spread(variance=squares / freedom if freedom else 0.0, freedom=freedom, origin=", ".join(origins))
