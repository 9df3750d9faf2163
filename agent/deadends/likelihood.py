"""How likely a source of failures that come and go makes just those that were seen, and lets all else pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

EVERYWHERE = 0.3
"""How likely a source strikes everywhere alike; for one place, it is as likely as a cause there."""
SOMEWHERE_RATE, EVERYWHERE_RATE = (3.0, 6.0), (1.0, 19.0)
"""What is known of its rate before anything was seen, as a beta distribution: about a third, or one in twenty."""


@dataclass(frozen=True, slots=True)
class Group:
    """Failures that one further cause would explain."""

    bits: int
    log_prior: float
    """Of there being such a cause."""
    is_each: bool = False
    """Whether each of the failures needs a cause of its own, which is as likely."""

    def log_of(self, bits: int) -> float:
        """Return how likely there are the causes of some of its failures (its logarithm)."""
        return self.log_prior * (bits.bit_count() if self.is_each else 1)


@dataclass(frozen=True, slots=True)
class Seen:
    """Failures that a source is to make, with all that was seen."""

    failures: int
    """Bits of all of them."""
    covered: int
    """Bits of those that it has to make."""
    others: Sequence[Group]
    """Those that other causes may make instead."""
    everywhere: int
    """Launches that came further, wherever."""

    def log_at(self, there: int, passed: int, at_least: float) -> float:
        """Return how likely a source at a place makes them, its prior left out; what is no more than is asked for may
        be less than it is.

        Args:
            there: Bits of the failures at the place.
            passed: How many launches came further there.
            at_least: What is asked for.
        """
        inside = self.failures & there
        number = inside.bit_count()
        here = log_likelihood(number, passed, SOMEWHERE_RATE)
        if here <= at_least:  # what is outside makes it less
            return here
        outside = log_of_everywhere(self.failures.bit_count() - number, self.everywhere - passed)
        if not self.covered & ~inside:
            by_causes, least = 0.0, max(outside, at_least - here)
            for group in self.others:
                if beyond := group.bits & ~inside:
                    by_causes += group.log_of(beyond)
                    if by_causes <= least:  # none of the rest can make it more
                        break
            outside = max(outside, by_causes)
        return here + outside


def ratio(log: float) -> float:
    """Return odds from their logarithm, which may be beyond all that matters."""
    return math.exp(max(-50.0, min(50.0, log)))


def log_of_everywhere(failed: int, passed: int) -> float:
    """Of a source that strikes everywhere alike, which nobody has to assume where nothing failed."""
    return math.log(EVERYWHERE) + log_likelihood(failed, passed, EVERYWHERE_RATE) if failed else 0.0


@lru_cache(maxsize=2**16)
def log_likelihood(failed: int, passed: int, rate: tuple[float, float]) -> float:
    """Return the logarithm of how likely just these of some launches fail, at a rate of which only this is known."""
    often, seldom = rate
    return _log_beta(often + failed, seldom + passed) - _log_beta(often, seldom)


def _log_beta(first: float, second: float) -> float:
    return math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)
