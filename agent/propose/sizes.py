"""How large the effects of single parameters and the noise are, as far as the launches tell: by marginal likelihood.

Most parameters of a node change nothing, and a few change much; which ones, nobody knows beforehand. What explains the
launches best, weighed against what is usual, says how much of a difference between two of them to believe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.propose.surrogate import TOGETHER, Seen, features_of
from search_spaces import SearchSpace

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

FACTORS = (0.2, 0.45, 1.0, 1.6)
"""What the effects of a parameter may be, as multiples of what is usual."""
FACTOR_SD = 0.8
"""Standard deviation of the logarithm of that multiple, before anything was seen."""
NOISE_FACTORS = (0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0, 4.0, 5.0)
"""What the noise may be, as multiples of what is usual."""
NOISE_FACTOR_SD = 0.7
MOST_ROWS = 48
"""Rows that are looked at, spread evenly over a longer study: the time grows with their third power."""
SWEEPS = 2
"""How often every parameter is looked at: what one explains, another one need not."""
DIGITS = 6
"""Decimals of a likelihood that count: what only rounding tells apart must not depend on the machine."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is believed of a study's effects and noise."""

    effects: Mapping[str, float]
    """Parameter → expected size of one value's effect, as a share of the figure."""
    noise_sd: float
    """Standard deviation from launch to launch, as a share of the figure."""


def learned(space: SearchSpace, usual: Sizes, rows: Sequence[Seen]) -> Sizes:
    """Return the sizes that explain the rows best, given what is usual; a function of its arguments alone."""
    fit = _Fit(space, usual, rows[:: -(-len(rows) // MOST_ROWS)])
    for _ in range(SWEEPS):
        fit.choose_noise()
        for name in fit.varied:
            fit.choose_factor(name)
    return Sizes({name: size * fit.factors[name] for name, size in usual.effects.items()}, usual.noise_sd * fit.noise)


class _Fit:
    """A guess of the sizes, which is improved one at a time. Tables are (rows, rows), stacks (guesses, rows, rows)."""

    def __init__(self, space: SearchSpace, usual: Sizes, rows: Sequence[Seen]) -> None:
        import numpy as np

        self._usual = usual
        self.factors, self.noise = dict.fromkeys(usual.effects, 1.0), 1.0
        self.varied = [name for name in usual.effects if len({repr(row.assignment[name]) for row in rows}) > 1]
        self._alone = {
            name: _products(features_of(space, {name: usual.effects[name]}, [row.assignment for row in rows]))
            for name in self.varied
        }
        self._total = _products(np.array([row.known.doubts for row in rows], dtype=float).reshape(len(rows), -1))
        for table in self._alone.values():
            self._total = self._total + table
        self._targets = np.array([math.log(row.value) - row.known.value for row in rows])
        self._numbers = np.array([row.number for row in rows], dtype=float)
        self._freedom = float(sum(row.number - 1 for row in rows))
        self._squares = sum(row.squares for row in rows)

    def choose_noise(self) -> None:
        """Take the likeliest noise beside the effects as they are."""
        scores = self._scores([self._total] * len(NOISE_FACTORS), [self.factors] * len(NOISE_FACTORS), NOISE_FACTORS)
        self.noise = NOISE_FACTORS[scores.index(max(scores))]

    def choose_factor(self, name: str) -> None:
        """Take the likeliest size of one parameter's effects beside the others as they are."""
        guesses = [{**self.factors, name: factor} for factor in FACTORS]
        rest = self._total - self.factors[name] ** 2 * self._alone[name]
        totals = [rest + factor**2 * self._alone[name] for factor in FACTORS]
        scores = self._scores(totals, guesses, (self.noise,) * len(FACTORS))
        best = scores.index(max(scores))
        self.factors, self._total = guesses[best], totals[best]

    def _scores(
        self, totals: Sequence[Table], guesses: Sequence[Mapping[str, float]], noises: Sequence[float]
    ) -> list[float]:
        """Return the logarithm of how likely each guess is, but for a constant."""
        import numpy as np

        sizes = np.array([max((self._usual.effects[n] * f for n, f in each.items()), default=0.1) for each in guesses])
        noise = np.array(noises) * self._usual.noise_sd
        product = np.stack(totals)
        norms = np.diagonal(product, axis1=1, axis2=2)
        squares = np.maximum(norms[:, :, None] + norms[:, None, :] - 2.0 * product, 0.0)
        scale = (sizes**2)[:, None, None]
        covariance = product + TOGETHER**2 * scale * np.exp(-squares / (4.0 * scale)) + 1e-6
        covariance += np.eye(len(self._targets)) * (noise**2)[:, None, None] / self._numbers[None, :, None]
        root = np.linalg.cholesky(covariance)
        both = np.broadcast_to(
            np.stack([self._targets, np.ones_like(self._targets)], axis=1), (len(noises), *norms.shape[1:], 2)
        )
        whitened = np.linalg.solve(root, both)
        values, ones = whitened[:, :, 0], whitened[:, :, 1]
        offset = (values * ones).sum(axis=1) / (ones**2).sum(axis=1)
        left = values - offset[:, None] * ones
        likelihood = -0.5 * (left**2).sum(axis=1) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        likelihood -= self._freedom * np.log(noise) + self._squares / (2.0 * noise**2)
        usual = [sum(math.log(factor) ** 2 for factor in each.values()) for each in guesses]
        likelihood -= np.array(usual) / (2.0 * FACTOR_SD**2) + np.log(np.array(noises)) ** 2 / (
            2.0 * NOISE_FACTOR_SD**2
        )
        return [round(float(each), DIGITS) for each in likelihood]


def _products(features: Table) -> Table:
    table: Table = features @ features.T
    return table
