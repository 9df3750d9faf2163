"""Which closed trials are new: a long study is not read from its beginning each time that a trial closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.store.trial import Trial


@dataclass
class Intake:
    """Hands out every closed trial of one growing list once."""

    _seen: set[tuple[str, int]] = field(default_factory=set)
    _closed: int = 0
    """How many trials at the beginning of the list are all closed: nothing there is new any more."""
    _last: tuple[str, int] | None = None
    """Study and number of the last one of these."""

    def fresh(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the closed trials that count and were not handed out yet, in their order.

        Args:
            trials: All trials of the list, with those of the call before in the same order.
        """
        begin = self._closed if self._is_known(trials) else 0
        found = [each for each in trials[begin:] if each.counts and _key(each) not in self._seen]
        self._seen.update(map(_key, found))
        while begin < len(trials) and trials[begin].is_closed:
            begin += 1
        self._closed, self._last = begin, _key(trials[begin - 1]) if begin else None
        return found

    def _is_known(self, trials: Sequence[Trial]) -> bool:
        return 0 < self._closed <= len(trials) and _key(trials[self._closed - 1]) == self._last


def _key(trial: Trial) -> tuple[str, int]:
    return trial.study, trial.number
