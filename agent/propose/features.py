"""Assignments as rows of numbers, whose products are the covariance of what they do.

Each value of each parameter has a feature of its own; numbers follow a trend and a bend as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_spaces import Assignment, Scalar, SearchSpace
from search_spaces.condition import is_number

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

TREND, BEND, OWN = 1.2, 1.2, 0.4
"""Effects of numbers relative to those of words: over the whole range up or down, bent, and of one value alone."""
FIRST_KEPT, MOST_KEPT = 256, 2**14
"""Points whose features are kept: room for so many at first, and all are forgotten where there would be more."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of several points, one row for each."""

    effects: Table
    """Of values, at the expected size of their effects."""
    settled: Table
    """The same for those of whose effects little is left to learn."""
    others: Table
    """Of what has a size of its own: doubts and ruinous values."""

    @property
    def tables(self) -> tuple[Table, Table, Table]:
        """All of them."""
        return self.effects, self.settled, self.others

    @property
    def squares(self) -> Table:
        """Squared length of each row."""
        effects, settled, others = ((table**2).sum(axis=1) for table in self.tables)
        total: Table = effects + settled + others
        return total

    def of(self, places: Sequence[int]) -> Features:
        """Return some of the rows."""
        return Features(*(table[list(places)] for table in self.tables))


class Values:
    """Features of the values of several parameters, which share no column.

    Args:
        space: The space that the parameters belong to.
        effects: Parameter → expected size of one value's effect; others have no features.
    """

    def __init__(self, space: SearchSpace, effects: Mapping[str, float]) -> None:
        import numpy as np

        self._names = list(effects)
        pairs = [(name, repr(value)) for name in effects for value in space.parameters[name].domain]
        self._place = {pair: row for row, pair in enumerate(pairs)}
        blocks = [size * np.array(_shapes(space.parameters[name].domain)) for name, size in effects.items()]
        self._rows = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)))
        row = column = 0
        for block in blocks:
            self._rows[row : row + len(block), column : column + block.shape[1]] = block
            row, column = row + len(block), column + block.shape[1]

        self._known: dict[tuple[Scalar, ...], int] = {}
        self._sums = np.zeros((FIRST_KEPT, self._rows.shape[1]))
        """Features of the points that were asked about, which a search asks about again and again."""

    def of(self, points: Sequence[Assignment]) -> Table:
        """Return one row of features for each point."""
        import numpy as np

        if not self._names:
            return np.zeros((len(points), 0))
        if len(self._known) + len(points) > MOST_KEPT:
            self._known.clear()
        keys = [tuple([point[name] for name in self._names]) for point in points]  # of a parameter, no two are equal
        for key in dict.fromkeys(key for key in keys if key not in self._known):
            self._add(key)
        found: Table = self._sums[[self._known[key] for key in keys]]
        return found

    def _add(self, key: tuple[Scalar, ...]) -> None:
        import numpy as np

        row = self._known[key] = len(self._known)
        if row == len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        places = [self._place[name, repr(value)] for name, value in zip(self._names, key, strict=True)]
        self._sums[row] = self._rows[places].sum(axis=0)


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
