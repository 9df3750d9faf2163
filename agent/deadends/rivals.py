"""What keeps a clear cause from being confirmed: chance at one of its conditions, with what would make that unlikely.

`backend = b ∧ draft = 3` failed each time, but `backend = b` alone passed only twice: a source that comes and goes
there may have made all of these failures. One more failure of both makes that less likely, and so does one more pass of
`backend = b` without `draft = 3`: more, where few launches passed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from search_spaces import Conjunction, Scalar, matches_all


@dataclass(frozen=True, slots=True)
class Rival:
    """A place where a source that comes and goes may have made the failures."""

    conditions: Conjunction
    excess: float
    """Logarithm of its odds over those up to which a cause is believed: positive, as long as it is in the way."""
    after_failure: float
    """What one more failure of the cause adds to that: negative."""
    after_pass: float
    """The same of one more pass at the place, without the cause."""


def worth_beside(rivals: Sequence[Rival], point: Mapping[str, Scalar]) -> float:
    """Return what a pass at a point outside of the cause tells, where one more failure inside tells 1.

    Args:
        rivals: All that are in the way of one cause.
        point: A complete assignment.
    """
    before = _most(each.excess for each in rivals)
    inside = before - _most(each.excess + each.after_failure for each in rivals)
    held = ((each, matches_all(each.conditions, point)) for each in rivals)
    outside = before - _most(each.excess + (each.after_pass if is_held else 0.0) for each, is_held in held)
    return outside / inside if inside > 0.0 else 0.0


def _most(excesses: Iterable[float]) -> float:
    return max([0.0, *excesses])
