"""What the assignments of a study measured: values of each, their means and their order, as launches are added."""

from __future__ import annotations

import statistics
from bisect import bisect_left, insort
from collections.abc import Collection, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from agent.spread import Launches, launches_of
from agent.store.trial import Trial

if TYPE_CHECKING:
    from agent.propose.history import History


class Values(dict[str, list[float]]):
    """Resolved assignment's key → values of all its measured launches, in order; keys in order of first measurement."""

    def __init__(self, found: Mapping[str, list[float]] | None = None) -> None:
        super().__init__()
        self.means: dict[str, float] = {}
        """Key → mean value, in the same order."""
        self._several: dict[str, Launches] = {}
        """Key → what the launches of an assignment that was launched more than once add to their spread."""
        self._ordered: list[tuple[float, int, str]] = []
        """Negative mean, number in order of first measurement, and key; ascending."""
        self._numbers: dict[str, int] = {}
        for key, values in (found or {}).items():
            for value in values:
                self.add(key, value)

    def __copy__(self) -> Values:
        found = Values()
        found.update(self)
        found.means, found._several = self.means.copy(), self._several.copy()
        found._ordered, found._numbers = self._ordered.copy(), self._numbers.copy()
        return found

    def add(self, key: str, value: float) -> None:
        """Take in one more launch of an assignment."""
        if key in self:
            del self._ordered[bisect_left(self._ordered, (-self.means[key], self._numbers[key], key))]
        self[key] = values = [*self.get(key, ()), value]
        if len(values) > 1:
            self._several[key] = launches_of(values)
        number = self._numbers.setdefault(key, len(self._numbers))
        self.means[key] = mean = value if len(values) == 1 else statistics.fmean(values)
        insort(self._ordered, (-mean, number, key))

    @property
    def ranking(self) -> list[str]:
        """The keys, best mean first; of equal ones the one that was measured first."""
        return [key for _, _, key in self._ordered]

    def best(self, number: int, among: int | None = None) -> set[str]:
        """Return the keys of so many with the best means, of all or among the so many that were measured first."""
        early = (key for _, place, key in self._ordered if among is None or place < among)
        return set(islice(early, number))

    @property
    def again(self) -> Collection[str]:
        """The keys of the assignments that were launched more than once."""
        return self._several.keys()

    @property
    def of_several(self) -> Collection[Launches]:
        """What the launches of each assignment that was launched more than once add to their spread."""
        return self._several.values()

    @property
    def best_of_once(self) -> float | None:
        """The highest value of an assignment that was launched just once."""
        return next((self[key][0] for _, _, key in self._ordered if key not in self._several), None)


def measured_values(history: History) -> Values:
    """Return the values of all measured launches; for studies of one goal."""
    return history.memo.fold("values", history.trials, Values, _add, closed_only=True)


def _add(found: Values, trial: Trial) -> None:
    if trial.is_measured and trial.outcome is not None and trial.outcome.value:
        found.add(trial.work.key, trial.outcome.value)
