"""What has not been tried yet is expected to measure: a Gaussian process over the logarithm of a positive figure.

Effects of single values multiply on real engines, so they add in the logarithm: the main part of the process is a
linear one over the values (each value of each parameter has an effect of its own, numbers follow a trend and a bend),
and a smaller smooth part takes up what values do only together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from search_spaces import Assignment, Scalar, SearchSpace
from search_spaces.condition import is_number

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

TREND, BEND, OWN = 1.2, 1.2, 0.4
"""Effects of numbers relative to those of words: over the whole range up or down, bent, and of one value alone."""
TOGETHER = 0.35
"""What values do only together, relative to what they do alone."""


@dataclass(frozen=True, slots=True)
class Beforehand:
    """What is known of a figure's logarithm beforehand."""

    value: float = 0.0
    """The best guess; the process explains the rest."""
    doubts: tuple[float, ...] = ()
    """Standard deviations of that guess, one for each source of doubt that it shares with other assignments."""


NOTHING = Beforehand()


def together(*parts: Sequence[Beforehand]) -> list[Beforehand]:
    """Return what several sources know of the same assignments: their guesses add up, their doubts stand apart."""
    none = [(0.0,) * max((len(each.doubts) for each in part), default=0) for part in parts]
    return [
        Beforehand(
            sum(each.value for each in row),
            tuple(chain.from_iterable(each.doubts or zeros for each, zeros in zip(row, none, strict=True))),
        )
        for row in zip(*parts, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """One assignment with its figure."""

    assignment: Assignment
    value: float
    """Mean of its figures; positive."""
    number: int = 1
    """How many figures the mean is of."""
    known: Beforehand = NOTHING


@dataclass(frozen=True, slots=True)
class Expected:
    """Expectations for several assignments, in logarithms of the figure."""

    mean: Table
    sd: Table


class Surrogate:
    """A process fitted to everything seen so far.

    Args:
        space: The space that the assignments belong to.
        effects: Parameter → expected size of one value's effect, as a share of the figure; others have none.
        rows: What was seen, at least one row.
        noise_sd: Standard deviation of a single figure, as a share of it.
    """

    def __init__(self, space: SearchSpace, effects: Mapping[str, float], rows: Sequence[Seen], noise_sd: float) -> None:
        self._space, self._effects, self._rows, self._noise_sd = space, effects, rows, noise_sd
        self._offset = sum(math.log(row.value) - row.known.value for row in rows) / len(rows)

    def expect(self, points: Sequence[Assignment], known: Sequence[Beforehand] = ()) -> Expected:
        """Return what is expected of assignments, each with what is known beforehand (by default nothing)."""
        import numpy as np

        known = known or [NOTHING] * len(points)
        features = self._features(points, known)
        across = self._covariance(features, self._seen)
        explained = self._whitener @ across.T
        mean = explained.T @ (self._whitener @ self._targets)
        variance = self._variance(features) - (explained**2).sum(axis=0)
        return Expected(
            mean + self._offset + np.array([each.value for each in known]), np.sqrt(np.maximum(variance, 0.0))
        )

    @cached_property
    def _whitener(self) -> Table:
        """Inverse of the lower Cholesky factor of the covariance of what was seen, noise included; (rows, rows)."""
        import numpy as np

        noise = np.array([self._noise_sd**2 / row.number for row in self._rows])
        root = np.linalg.cholesky(self._covariance(self._seen, self._seen) + np.diag(noise))
        whitener: Table = np.linalg.solve(root, np.eye(len(self._rows)))
        return whitener

    @cached_property
    def _targets(self) -> Table:
        import numpy as np

        return np.array([math.log(row.value) - row.known.value - self._offset for row in self._rows])

    @cached_property
    def _seen(self) -> Table:
        return self._features([row.assignment for row in self._rows], [row.known for row in self._rows])

    def _covariance(self, first: Table, second: Table) -> Table:
        """Return the covariance of the process between points of two tables of features; (first, second)."""
        import numpy as np

        product = first @ second.T
        squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2.0 * product
        jointly = (TOGETHER * self._size) ** 2 * np.exp(-np.maximum(squares, 0.0) / (4.0 * self._size**2))
        covariance: Table = jointly + product + 1e-6
        return covariance

    def _variance(self, features: Table) -> Table:
        variance: Table = (features**2).sum(axis=1) + (TOGETHER * self._size) ** 2 + 1e-6
        return variance

    @property
    def _size(self) -> float:
        return max(self._effects.values(), default=0.1)

    def _features(self, points: Sequence[Assignment], known: Sequence[Beforehand]) -> Table:
        """Return one row of features for each point: those of its values, then its doubts."""
        import numpy as np

        places = [[self._place[name, repr(point[name])] for name in self._effects] for point in points]
        doubts = np.zeros((len(points), len(self._rows[0].known.doubts)))
        for row, beforehand in enumerate(known):
            if beforehand.doubts:
                doubts[row] = beforehand.doubts
        values = self._of_values[np.array(places, dtype=int).reshape(len(points), -1)].sum(axis=1)
        return np.hstack([values, doubts])

    @cached_property
    def _place(self) -> Mapping[tuple[str, str], int]:
        """Parameter and value → row of the table of values."""
        pairs = [(name, repr(value)) for name in self._effects for value in self._space.parameters[name].domain]
        return {pair: row for row, pair in enumerate(pairs)}

    @cached_property
    def _of_values(self) -> Table:
        """Features of each value of each parameter; parameters share no column."""
        import numpy as np

        blocks = [size * np.array(_shapes(self._space.parameters[n].domain)) for n, size in self._effects.items()]
        table = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)))
        row = column = 0
        for block in blocks:
            table[row : row + len(block), column : column + block.shape[1]] = block
            row, column = row + len(block), column + block.shape[1]
        return table


def _shapes(domain: Sequence[Scalar]) -> list[list[float]]:
    """Return the features of each value of a domain: one for itself; of numbers also the trend and the bend."""
    numbers = sorted(value for value in domain if is_number(value))
    rows = []
    for index, value in enumerate(domain):
        row = [0.0] * (len(domain) + 2)
        row[index] = 1.0
        if len(numbers) > 2 and is_number(value):
            place = 2.0 * numbers.index(value) / (len(numbers) - 1) - 1.0
            row[index], row[-2:] = OWN, [TREND * place, BEND * place**2]
        rows.append(row)
    return rows
