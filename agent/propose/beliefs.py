"""How large the effects of values are in a study, and how far its launches differ: what all its launches say together.

Repeats alone say little of the noise before the study is nearly over, and a process that believes in too little of it
takes every lucky launch for an effect. How well all launches agree with an additive model says more: each size of the
effects and each noise that is thinkable is weighed by how likely it makes what was seen (the evidence, or marginal
likelihood; Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.spread import Spread

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

SIZES = (0.15, 0.3, 0.6, 1.0)
"""Sizes of the effects, as shares of the expected ones, that are weighed."""
NOISES = (0.02, 0.03, 0.04, 0.055, 0.075, 0.1, 0.13, 0.17, 0.22, 0.28)
"""Standard deviations of single launches, as shares of the figure, that are weighed."""
LATEST = 60
"""Rows that the evidence is taken from in a long study."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is believed of effects and noise: the root of the mean square of each, over all that is thinkable."""

    size: float
    """Size of the effects as a share of the expected one."""
    settled_size: float
    """The same for effects of which little is left to learn."""
    noise_sd: float
    """Standard deviation of a single launch, as a share of the figure."""


AS_EXPECTED = Belief(1.0, 1.0, 0.0)


def believed(effects: Table, settled: Table, rest: Table, targets: Table, numbers: Table, spread: Spread) -> Belief:
    """Return what is believed after some launches.

    Args:
        effects: Covariance of the effects of values between the rows, at their expected size; (rows, rows).
        settled: The same of effects of which little is left to learn.
        rest: Covariance of everything else but noise; (rows, rows).
        targets: Logarithms of the figures without what is known beforehand, around their middle; (rows,).
        numbers: How many launches each of them is the mean of; (rows,).
        spread: What repeats, and what is usual, say of the noise.
    """
    import numpy as np

    sizes = np.array([(size, other) for size in SIZES for other in (SIZES if settled.any() else SIZES[:1])])
    noises, root = np.array(NOISES), np.sqrt(numbers)
    sums = rest + sizes[:, :1, None] ** 2 * effects + sizes[:, 1:, None] ** 2 * settled
    # With rows weighed by their launches the noise is the same in each: one decomposition serves for every noise.
    spectra, vectors = np.linalg.eigh(sums * root[:, None] * root)
    variances = np.maximum(spectra, 0.0)[:, None, :] + noises[:, None] ** 2
    squares = (np.swapaxes(vectors, 1, 2) @ (root * targets))[:, None, :] ** 2 / variances
    evidence = -0.5 * (squares + np.log(variances)).sum(axis=2)
    evidence -= spread.freedom * (np.log(noises) + spread.variance / (2.0 * noises**2))
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    size, settled_size = np.sqrt(weights.sum(axis=1) @ sizes**2)
    return Belief(float(size), float(settled_size), math.sqrt(float(weights.sum(axis=0) @ noises**2)))
