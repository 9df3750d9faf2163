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
from typing import TYPE_CHECKING, Any

from search_spaces import Assignment, SearchSpace
from search_spaces.condition import is_number

if TYPE_CHECKING:
    import numpy as np

TREND, BEND, OWN = 1.6, 1.6, 0.4
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

    mean: np.ndarray[Any, Any]
    sd: np.ndarray[Any, Any]


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
        mean, sd = self._process.predict(self._features(points, known), return_std=True)
        return Expected(np.asarray(mean) + self._offset + np.array([each.value for each in known]), np.asarray(sd))

    @cached_property
    def _process(self) -> Any:
        import numpy as np
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

        size = max(self._effects.values(), default=0.1)
        together = ConstantKernel((TOGETHER * size) ** 2, "fixed") * RBF(size * math.sqrt(2.0), "fixed")
        alpha = np.array([self._noise_sd**2 / row.number for row in self._rows])
        process = GaussianProcessRegressor(DotProduct(1e-3, "fixed") + together, alpha=alpha, optimizer=None)
        targets = np.array([math.log(row.value) - row.known.value - self._offset for row in self._rows])
        features = self._features([row.assignment for row in self._rows], [row.known for row in self._rows])
        return process.fit(features, targets)

    def _features(self, points: Sequence[Assignment], known: Sequence[Beforehand]) -> Any:
        import numpy as np

        num_doubts = len(self._rows[0].known.doubts)
        table = np.zeros((len(points), self._width + num_doubts))
        for row, (assignment, beforehand) in enumerate(zip(points, known, strict=True)):
            if beforehand.doubts:
                table[row, self._width :] = beforehand.doubts
            for name in self._effects:
                for column, entry in self._entries.get((name, repr(assignment[name])), ()):
                    table[row, column] = entry
        return table

    @property
    def _width(self) -> int:
        return 1 + max((column for row in self._entries.values() for column, _ in row), default=0)

    @cached_property
    def _entries(self) -> Mapping[tuple[str, str], tuple[tuple[int, float], ...]]:
        """For each value of each parameter, its columns of the table of features with what stands in them."""
        entries: dict[tuple[str, str], tuple[tuple[int, float], ...]] = {}
        width = 0
        for name, size in self._effects.items():
            domain = self._space.parameters[name].domain
            numbers = sorted(value for value in domain if is_number(value))
            for index, value in enumerate(domain):
                shape: tuple[tuple[int, float], ...] = ((0, 1.0),)
                if len(numbers) > 2 and is_number(value):
                    place = 2.0 * numbers.index(value) / (len(numbers) - 1) - 1.0
                    shape = ((0, OWN), (len(domain) - index, TREND * place), (len(domain) - index + 1, BEND * place**2))
                entries[name, repr(value)] = tuple((width + index + at, size * entry) for at, entry in shape)
            width += len(domain) + 2
        return entries
