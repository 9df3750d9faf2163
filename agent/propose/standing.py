"""Who leads, and how sure that is: what the measured assignments are expected to be worth, repeats included."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from agent.classify import wrong_output
from agent.propose import sums, tallies
from agent.propose.closed import of_closed
from agent.propose.history import History
from agent.propose.improve import Improvement, improvement_of
from agent.propose.memo import Memo
from agent.reasons import Reason
from agent.spread import Spread
from agent.store.trial import Trial
from agent.verdict import LEVEL, Comparison, comparisons
from runners import Measurement
from runners.simulated_acceptance import FIGURE

LEARNED_WEIGHT = 4
"""How many repeats the noise that is learned from all launches counts for: a study's own are five to eight, and agree
far too well, or far too badly, by chance."""


@dataclass(frozen=True)
class Standing:
    """The measured assignments of a study as contenders. All figures are logarithms of the objective."""

    history: History

    @cached_property
    def expected(self) -> Mapping[str, tuple[float, float]]:
        """Key → mean and standard deviation of what the assignment is worth, given every launch of every other one.

        A single lucky launch is drawn towards what its values measured elsewhere.
        """
        return self._improvement.expectations()

    @cached_property
    def _improvement(self) -> Improvement:
        return improvement_of(self.history)

    def repeats(self, key: str) -> list[float]:
        """Return the values that count: all but the first, for which it was chosen; the baseline was not chosen."""
        values = self.history.values.get(key, [])
        return values if key == self.history.baseline_key else values[1:]

    @cached_property
    def reliable(self) -> list[str]:
        """Keys of the measured assignments that may win: none with wrong output, or that failed as often as not."""
        return [key for key in self.history.measured if key not in self._unfit]

    @cached_property
    def hopeful(self) -> list[str]:
        """Those of which something is expected: of a long study the best and the latest. No other one leads."""
        return [key for key in self.expected if key not in self._unfit]

    @cached_property
    def _unfit(self) -> set[str]:
        """Keys of the assignments that may not win; the baseline always may."""
        return of_closed(self.history, "unfit", self._all_unfit)

    def _all_unfit(self) -> set[str]:
        history, failed = self.history, sums.failed_launches(self.history)
        unfit = {key for key, number in failed.items() if number >= len(history.values.get(key, ()))}
        return (unfit | _wrong(history)) - {history.baseline_key}

    @cached_property
    def repeated(self) -> list[str]:
        """Those of them that were repeated, without the baseline."""
        again = self.history.values.again
        return [key for key in self.reliable if key in again and key != self.history.baseline_key]

    def worth(self, key: str) -> float:
        """Return what an assignment is expected to be worth; the least possible for one that nothing is expected of."""
        return self.expected[key][0] if key in self.expected else -math.inf

    def leader(self, keys: Iterable[str]) -> str | None:
        """Return the assignment that is expected to be worth most."""
        known = [key for key in keys if key in self.expected]
        return max(known, key=lambda key: (self.expected[key][0], key), default=None)

    @cached_property
    def first(self) -> str | None:
        """The reliable assignment that is expected to be worth most."""
        return self.leader(self.hopeful)

    def expected_gain(self, key: str, over: str) -> float:
        """Return how much better than `over` an assignment is expected to be where it is better at all."""
        (mean, sd), (other_mean, other_sd) = self.expected[key], self.expected[over]
        gain, spread = mean - other_mean, math.hypot(sd, other_sd)
        if spread <= 0.0:
            return max(gain, 0.0)
        z = gain / spread
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return gain * 0.5 * (1 + math.erf(z / math.sqrt(2))) + spread * density

    @cached_property
    def winner(self) -> str | None:
        """The assignment to declare: once some were repeated, one of them or the baseline, else the best mean."""
        baseline = self.history.baseline_key
        if not self.repeated:
            return max(self.reliable, key=self.history.mean, default=None)
        return self.leader([*self.repeated, *([baseline] if baseline in self.reliable else [])])

    def comparison(self, key: str | None) -> Comparison | None:
        """Return the winner against the baseline; of the baseline itself, the best of the others."""
        rival = self.leader(self.repeated) if key == self.history.baseline_key else key
        return self.comparisons().get(rival or "")

    def comparisons(self, level: float = LEVEL) -> dict[str, Comparison]:
        """Return each repeated assignment against the baseline."""
        return of_closed(self.history, f"compared at {level}", partial(self._compared, level))

    def _compared(self, level: float) -> dict[str, Comparison]:
        baseline = self.history.baseline_key
        if baseline is None or not self.repeated:
            return {}
        repeats = {key: self.repeats(key) for key in self.repeated}
        learned = Spread(variance=self._improvement.noise_sd**2, freedom=LEARNED_WEIGHT)
        return comparisons(self.history.values[baseline], repeats, level=level, learned=learned)


def _wrong(history: History) -> set[str]:
    """Return the keys of the assignments whose output is wrong beside what all launches of the baseline said."""
    baselines = [found for trial in tallies.with_key(history, history.baseline_key) for found in _of(trial)]

    def add(found: set[str], trial: Trial) -> None:
        if _is_wrong(trial, baselines):
            found.add(trial.work.key)

    # Sums of its own: with one more launch of the baseline they are all taken anew, and the old ones are let go.
    beside = history.memo.derived("wrong beside", (history.baseline_key, len(baselines)), Memo)
    return beside.fold("wrong", history.trials, set, add, closed_only=True)


def _is_wrong(trial: Trial, baselines: Sequence[Measurement]) -> bool:
    """Return whether the output was found wrong, or would have been had the baseline run before it."""
    failure = trial.outcome.failure if trial.outcome is not None else None
    if failure is not None or not trial.is_measured:
        return failure is not None and failure.reason is Reason.WRONG_OUTPUT
    is_checked = trial.outcome is not None and trial.outcome.output is not None
    return not is_checked and any(wrong_output(found, baselines) for found in _of(trial) if FIGURE not in found.extra)


def _of(trial: Trial) -> list[Measurement]:
    measurement = trial.record.measurement if trial.record is not None else None
    return [measurement] if measurement is not None and trial.is_measured else []
