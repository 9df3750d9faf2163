"""What launches are expected to measure: a Gaussian process over the logarithm of the objective.

Effects of single values multiply on real engines, so they add in the logarithm: the main part of the process is a
linear one over the values (each value of each parameter has an effect of its own), and a smaller smooth part takes up
what values do only together. Communication time seen by probes enters as one more direction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from search_spaces import Assignment, SearchSpace
from search_spaces.condition import is_number

if TYPE_CHECKING:
    import numpy as np

EFFECT_SD = 0.15
"""Expected size of one value's effect, as a share of the objective."""
TREND_SD, BEND_SD, OWN_SD = 0.25, 0.25, 0.05
"""The same for numbers, which follow their order: a trend and a bend over the range, and a little of their own."""
TOGETHER_SD = 0.05
"""Expected size of what two values do only together."""
COMMUNICATION_SD = 0.25
"""How far the effect of the communication time may lie from what its share of a step says, as a share of it."""
USUAL_SHARE = 0.4
"""Share of the communication in a step where no launch says how long a step is."""
NOISE_SD = 0.05
"""From launch to launch, where no repeats say how large it is."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured assignment."""

    assignment: Assignment
    value: float
    """Mean objective of its launches."""
    launches: int
    pass_us: float | None
    """Communication time of a verify pass, where a probe saw it."""
    step_us: float | None = None
    """Time of a whole step at the lowest concurrency, where the launch says."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Expectations for several assignments, in logarithms of the objective."""

    mean: np.ndarray[Any, Any]
    sd: np.ndarray[Any, Any]


class Surrogate:
    """A process fitted to everything measured so far."""

    def __init__(self, space: SearchSpace, rows: Sequence[Measured], noise_sd: float = NOISE_SD) -> None:
        self._space = space
        self._rows = rows
        self._noise_sd = noise_sd
        self._offset = sum(math.log(row.value) for row in rows) / len(rows)
        known = [row.pass_us for row in rows if row.pass_us]
        self._usual_us = statistics.median(known) if known else None
        shares = [row.pass_us / row.step_us for row in rows if row.pass_us and row.step_us]
        self._share = min(statistics.median(shares), 0.95) if shares else USUAL_SHARE

    def expect(self, points: Sequence[tuple[Assignment, float | None]]) -> Expected:
        """Return what is expected of assignments, each with its communication time where one is known."""
        import numpy as np

        mean, sd = self._process.predict(self._features(points), return_std=True)
        slope = np.array([self._known(pass_us) for _, pass_us in points])
        return Expected(np.asarray(mean) + self._offset + slope, np.asarray(sd))

    def _known(self, pass_us: float | None) -> float:
        """Return what the communication time alone does to the objective's logarithm, relative to the usual time."""
        if not pass_us or not self._usual_us:
            return 0.0
        return -math.log(1.0 - self._share + self._share * pass_us / self._usual_us)

    @cached_property
    def _process(self) -> Any:
        import numpy as np
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

        linear = ConstantKernel(1.0, "fixed") * DotProduct(1e-3, "fixed")
        together = ConstantKernel(TOGETHER_SD**2, "fixed") * RBF(EFFECT_SD * math.sqrt(2.0), "fixed")
        alpha = np.array([self._noise_sd**2 / row.launches for row in self._rows])
        process = GaussianProcessRegressor(linear + together, alpha=alpha, optimizer=None)
        targets = np.array([math.log(row.value) - self._offset - self._known(row.pass_us) for row in self._rows])
        return process.fit(self._features([(row.assignment, row.pass_us) for row in self._rows]), targets)

    def _features(self, points: Sequence[tuple[Assignment, float | None]]) -> Any:
        import numpy as np

        table = np.zeros((len(points), self._width + 1))
        for row, (assignment, pass_us) in enumerate(points):
            for name, value in assignment.items():
                for column, entry in self._entries.get((name, repr(value)), ()):
                    table[row, column] = entry
            table[row, -1] = COMMUNICATION_SD * self._known(pass_us)
        return table

    @property
    def _width(self) -> int:
        return 1 + max((column for row in self._entries.values() for column, _ in row), default=-1)

    @cached_property
    def _entries(self) -> Mapping[tuple[str, str], tuple[tuple[int, float], ...]]:
        """For each value of each parameter, its columns of the table of features with what stands in them."""
        entries: dict[tuple[str, str], tuple[tuple[int, float], ...]] = {}
        width = 0
        for name, parameter in self._space.parameters.items():
            domain = parameter.domain
            numbers = sorted(value for value in domain if is_number(value))
            has_order = len(numbers) > 2
            for index, value in enumerate(domain):
                own = (width + index, OWN_SD if has_order and is_number(value) else EFFECT_SD)
                place = 2.0 * numbers.index(value) / (len(numbers) - 1) - 1.0 if has_order and is_number(value) else 0.0
                trend = (width + len(domain), TREND_SD * place), (width + len(domain) + 1, BEND_SD * place * place)
                entries[name, repr(value)] = (own, *trend) if has_order else (own,)
            width += len(domain) + 2
        return entries
