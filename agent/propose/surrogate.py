"""What has not been tried yet is expected to measure: a Gaussian process over the logarithm of a positive figure.

Effects of single values multiply on real engines, so they add in the logarithm: the main part of the process is a
linear one over the values (each value of each parameter has an effect of its own, numbers follow a trend and a bend),
and a smaller smooth part takes up what values do only together. How large the effects are, and how far launches differ
by chance, is learned from the same rows (`beliefs`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from agent.propose.beliefs import AS_EXPECTED, LATEST, Belief, believed
from agent.propose.features import Features, Values
from agent.propose.gradient import Outlook
from agent.propose.outliers import Value, bounded, ruinous
from agent.spread import Spread
from search_spaces import Assignment, SearchSpace

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

TOGETHER = 0.35
"""What values do only together, relative to what they are expected to do alone."""
RUIN = 1.0
"""Standard deviation of the effect of a value that makes everything several times slower; in logarithms."""
MIDDLE_SD = 0.03
"""Standard deviation of what all rows have in common, beside their mean; in logarithms."""


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


@dataclass(frozen=True, slots=True)
class Effects:
    """Parameter → expected size of one value's effect, as a share of the figure; one in none of them has none."""

    open: Mapping[str, float]
    """Of those whose effects launches have to tell: how large they are is learned from all of them."""
    settled: Mapping[str, float] = field(default_factory=dict)
    """Of those of whose effects little is left to learn: their size is learned on its own."""
    kept: Mapping[str, float] = field(default_factory=dict)
    """Of those that few launches ever differ in: that these few agree says nothing of the values not launched yet, and
    the size is not learned."""

    @property
    def all(self) -> dict[str, float]:
        """All of them."""
        return {**self.open, **self.settled, **self.kept}


def tables_of(space: SearchSpace, effects: Effects) -> tuple[Values, ...]:
    """Return the features of the values of a space: of open effects, of settled ones, of those that are kept."""
    return tuple(Values(space, sizes) for sizes in (effects.open, effects.settled, effects.kept))


@dataclass(frozen=True, slots=True)
class _Covariance:
    """Covariance of the process between the points of two tables."""

    effects: Table
    """Of the effects of values, at their expected size."""
    settled: Table
    """The same for those of which little is left to learn."""
    rest: Table
    """Of everything else."""


class Surrogate:
    """A process fitted to everything seen so far.

    Args:
        space: The space that the assignments belong to.
        effects: How large the effects of values are expected to be.
        rows: What was seen, at least one row.
        noise: Standard deviation of a single figure, as a share of it, where it is known and the effects are as
            expected. Or what repeats say of it: the noise and the size of the effects are then learned from all rows.
            Or what was learned of both from other rows.
        tables: The features of these effects (`tables_of`), where they are at hand.
        ruinous: Values that make everything several times slower, where they are known.
    """

    def __init__(
        self,
        space: SearchSpace,
        effects: Effects,
        rows: Sequence[Seen],
        noise: float | Spread | Belief,
        tables: Sequence[Values] = (),
        ruinous: Sequence[Value] | None = None,
    ) -> None:
        self._effects, self._rows, self._noise = effects.all, rows, noise
        self._tables = tables or tables_of(space, effects)
        self._learns, self._known_ruinous = not isinstance(noise, float), ruinous

    def expect(self, points: Sequence[Assignment], known: Sequence[Beforehand] = ()) -> Expected:
        """Return what is expected of assignments, each with what is known beforehand (by default nothing)."""
        import numpy as np

        known = known or [NOTHING] * len(points)
        features = self._features(points, known)
        explained = self._whitener @ self._sum(self._covariance(features, self._seen)).T
        mean = explained.T @ (self._whitener @ self._targets)
        variance = self._variance(features) - (explained**2).sum(axis=0)
        return Expected(
            mean + self._offset + np.array([each.value for each in known]), np.sqrt(np.maximum(variance, 0.0))
        )

    def expect_rows(self) -> Expected:
        """Return the same of the rows that it was fitted to.

        The covariance of the rows is that of what was seen, less the noise N on its diagonal: with A for the latter,
        the mean is t - N A⁻¹ t, and the variance N - N A⁻¹ N. That needs no product of tables.
        """
        import numpy as np

        noise = self.belief.noise_sd**2 / self._numbers
        mean = self._targets - noise * (self._whitener.T @ (self._whitener @ self._targets))
        variance = noise - noise**2 * (self._whitener**2).sum(axis=0)
        known = np.array([row.known.value for row in self._rows])
        return Expected(mean + self._offset + known, np.sqrt(np.maximum(variance, 0.0)))

    def outlook(self, points: Sequence[Assignment], known: Sequence[Beforehand], rivals: Sequence[int]) -> Outlook:
        """Return what is expected of candidates beside the rivals that they have to beat.

        Args:
            points: Candidates.
            known: What is known of each beforehand.
            rivals: Places of their rows.
        """
        import numpy as np

        features, places = self._features(points, known), list(rivals)
        explained = self._whitener @ self._sum(self._covariance(features, self._seen)).T
        own = self._whitener @ self._sum(self._own)[:, places]
        told = self._whitener @ self._targets
        beside = self._covariance(features, self._seen.of(places))
        return Outlook(
            noise_sd=self.belief.noise_sd,
            mean=self._offset + np.array([each.value for each in known]) + explained.T @ told,
            variance=np.maximum(self._variance(features) - (explained**2).sum(axis=0), 0.0),
            rivals=self._offset + np.array([self._rows[place].known.value for place in places]) + own.T @ told,
            shared=self._sum(beside) - explained.T @ own,
        )

    @cached_property
    def belief(self) -> Belief:
        """How large effects and noise are."""
        if isinstance(self._noise, float):
            return replace(AS_EXPECTED, noise_sd=self._noise)
        if isinstance(self._noise, Belief):
            return self._noise
        own, rows = self._own, slice(-LATEST, None)
        effects, settled, rest = (table[rows, rows] for table in (own.effects, own.settled, own.rest))
        return believed(effects, settled, rest, self._targets[rows], self._numbers[rows], self._noise)

    @cached_property
    def _whitener(self) -> Table:
        """Inverse of the lower Cholesky factor of the covariance of what was seen, noise included; (rows, rows)."""
        import numpy as np
        from scipy.linalg import solve_triangular

        root = np.linalg.cholesky(self._sum(self._own) + np.diag(self.belief.noise_sd**2 / self._numbers))
        whitener: Table = solve_triangular(root, np.eye(len(self._rows)), lower=True, check_finite=False)
        return whitener

    def _sum(self, covariance: _Covariance) -> Table:
        effects, settled = self.belief.size**2 * covariance.effects, self.belief.settled_size**2 * covariance.settled
        total: Table = effects + settled + covariance.rest
        return total

    @cached_property
    def _numbers(self) -> Table:
        import numpy as np

        return np.array([float(row.number) for row in self._rows])

    @cached_property
    def ruinous(self) -> Sequence[Value]:
        """Values whose effect is of another size than those of all others."""
        if self._known_ruinous is not None or not self._learns:
            return self._known_ruinous or ()
        return ruinous(self._logs, [row.assignment for row in self._rows], self._effects)

    @cached_property
    def _logs(self) -> list[float]:
        return [math.log(row.value) - row.known.value for row in self._rows]

    @cached_property
    def _explained(self) -> list[bool]:
        """Whether a ruinous value explains why a row is what it is."""
        return [any(row.assignment[name] == value for name, value in self.ruinous) for row in self._rows]

    @cached_property
    def _bounded(self) -> list[float]:
        return bounded(self._logs, self._explained) if self._learns else self._logs

    @cached_property
    def _offset(self) -> float:
        rows = zip(self._bounded, self._explained, strict=True)
        others = [log for log, is_explained in rows if not is_explained] or self._bounded
        return math.fsum(others) / len(others)

    @cached_property
    def _targets(self) -> Table:
        import numpy as np

        return np.array(self._bounded) - self._offset

    @cached_property
    def _seen(self) -> Features:
        return self._features([row.assignment for row in self._rows], [row.known for row in self._rows])

    @cached_property
    def _own(self) -> _Covariance:
        return self._covariance(self._seen, self._seen)

    def _covariance(self, first: Features, second: Features) -> _Covariance:
        """Return the covariance of the process between points of two tables of features; (first, second)."""
        import numpy as np

        effects, settled, others = (one @ two.T for one, two in zip(first.tables, second.tables, strict=True))
        squares = first.squares[:, None] + second.squares[None, :] - 2.0 * (effects + settled + others)
        jointly = (TOGETHER * self._size) ** 2 * np.exp(-np.maximum(squares, 0.0) / (4.0 * self._size**2))
        return _Covariance(effects, settled, jointly + others + MIDDLE_SD**2)

    def _variance(self, features: Features) -> Table:
        effects, settled, others = ((table**2).sum(axis=1) for table in features.tables)
        rest = others + (TOGETHER * self._size) ** 2 + MIDDLE_SD**2
        variance: Table = self.belief.size**2 * effects + self.belief.settled_size**2 * settled + rest
        return variance

    @property
    def _size(self) -> float:
        return max(self._effects.values(), default=0.1)

    def _features(self, points: Sequence[Assignment], known: Sequence[Beforehand]) -> Features:
        """Return one row of features for each point: those of its values, then its doubts and its ruinous values."""
        import numpy as np

        effects, settled, kept = (table.of(points) for table in self._tables)
        doubts = np.zeros((len(points), len(self._rows[0].known.doubts)))
        for row, beforehand in enumerate(known):
            if beforehand.doubts:
                doubts[row] = beforehand.doubts
        ruined = [[RUIN * (point[name] == value) for name, value in self.ruinous] for point in points]
        return Features(effects, settled, np.hstack([kept, doubts, np.array(ruined).reshape(len(points), -1)]))
