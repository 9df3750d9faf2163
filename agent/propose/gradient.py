"""What a launch is worth where launches differ by chance: the knowledge gradient.

A launch of a candidate moves what is expected of it and of everything that shares values with it, the less the more
launches differ. It is worth as much as the best expectation is expected to rise by it (Frazier, Powell and Dayanik,
"The knowledge-gradient policy for correlated normal beliefs", INFORMS Journal on Computing 21, 2009). Without noise,
that is nearly the expected improvement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

NUMBERS = (1, 2, 4, 8)
"""How many launches of a kind are looked at together: the value of information is not concave (Frazier and Powell,
"Paradoxes in learning and the marginal value of information", Decision Analysis 7, 2010)."""
REACH, STEPS = 5.0, 41
"""How many standard deviations of a launch's result are looked at to either side, and at how many places."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is expected of candidates and of what they have to beat; in logarithms of the figure."""

    noise_sd: float
    """Of a single launch."""
    mean: Table
    """(candidates,)."""
    variance: Table
    """(candidates,)."""
    rivals: Table
    """What is expected of what was launched; (rivals,)."""
    shared: Table
    """Covariance of candidates and rivals; (candidates, rivals)."""


def gains(outlook: Outlook) -> Table:
    """Return how much the best expectation is expected to rise for each launch of each candidate; (candidates,).

    Where launches differ much, one of a candidate that is expected to be worse can hardly make it the best, and a few
    could: a launch is worth what it brings as one of so many of its kind, for the number that brings most.
    What is not launched is never declared: a candidate's own expectation counts from its launch on.
    """
    import numpy as np

    found: Table = np.max([_of(outlook, number) / number for number in NUMBERS], axis=0)
    return found


def _of(outlook: Outlook, number: int) -> Table:
    """Return how much the best expectation is expected to rise by so many launches of each candidate."""
    import numpy as np

    result_sd = np.sqrt(outlook.variance + outlook.noise_sd**2 / number)
    places = np.linspace(-REACH, REACH, STEPS)
    weights = np.exp(-(places**2) / 2.0)
    risen = outlook.mean[:, None] + (outlook.variance / result_sd)[:, None] * places
    for rival, shared in zip(outlook.rivals, outlook.shared.T, strict=True):
        risen = np.maximum(risen, rival + (shared / result_sd)[:, None] * places)
    found: Table = risen @ (weights / weights.sum()) - outlook.rivals.max()
    return np.maximum(found, 0.0)
