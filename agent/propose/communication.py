"""What the communication of a verify pass costs, from probes: for every assignment, probed or not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.propose import tallies
from agent.propose.closed import num_ended
from agent.propose.history import History
from agent.propose.points import Points, points_of
from agent.propose.prepared import facts_of
from agent.propose.surrogate import NOTHING, Beforehand, Effects, Seen, Surrogate
from agent.store.trial import Trial
from search_spaces import Assignment

EFFECT, NOISE_SD = 0.3, 0.03
"""Expected size of one value's effect on the communication time and a probe's noise, as shares of it."""
EFFECT_SD = 0.2
"""Standard deviation of the communication's effect on a step with speculation, as a share of the effect."""
ELSEWHERE, ELSEWHERE_SD = 1.0, 0.4
"""The effect without speculation and its standard deviation, as shares of that with speculation; that a verify pass
gains more from faster collectives is counted with its tokens (`drafting`)."""
BEST_ROWS, LATEST_ROWS = 120, 120
"""Probes that the process is fitted to where there are more: what was probed need not be expected."""
USUAL_SHARE = 0.4
"""Share of the communication in a step where no launch says how long a step is."""


@dataclass(frozen=True)
class Communication:
    """Communication times as the probes of a study saw them."""

    history: History

    @property
    def is_known(self) -> bool:
        """True when any probe told a time."""
        return bool(self._rows)

    def effects(self, points: Sequence[Assignment]) -> list[Beforehand]:
        """Return what the communication alone does to the objective's logarithm, relative to the base.

        Probes time the verify pass of the base. Without speculation a step is another one, of which communication is
        another share: how far its effect goes there is learned on its own.
        """
        base = self.history.base
        if not self.is_known or base is None:
            return [NOTHING] * len(points)
        times = self.times([*points, base])
        speculates = not self._points.of(base).is_baseline
        found = []
        for point, time in zip(points, times, strict=False):
            effect = -math.log(1.0 - self._share + self._share * time / times[-1])
            if speculates and self._points.of(point).is_baseline:
                found.append(Beforehand(ELSEWHERE * effect, (0.0, ELSEWHERE_SD * effect)))
            else:
                found.append(Beforehand(effect, (EFFECT_SD * effect, 0.0)))
        return found

    def times(self, points: Sequence[Assignment]) -> list[float]:
        """Return the communication time of a verify pass in microseconds, measured or else expected."""
        keys = [self._key(point) for point in points]
        missing = {key: point for key, point in zip(keys, points, strict=True) if key not in self._times}
        if missing:
            expected = self._surrogate.expect(list(missing.values())).mean
            self._times.update(zip(missing, (math.exp(float(each)) for each in expected), strict=True))
        return [self._times[key] for key in keys]

    @cached_property
    def _times(self) -> dict[tuple[str, ...], float]:
        """What a probe can see → the time, measured, or expected where it was asked for."""
        return dict(self._measured)

    def _key(self, point: Assignment) -> tuple[str, ...]:
        return self._points.of(point).visible

    @cached_property
    def _points(self) -> Points:
        return points_of(self.history)

    @property
    def _pass(self) -> int | None:
        """How many tokens the base drafts: a probe of another verify pass, or of none, times something else."""
        base = self.history.base
        return None if base is None else self.history.space.num_drafted(base, self.history.facts)

    @cached_property
    def _rows(self) -> list[Seen]:
        own = self._pass

        def add(found: list[Seen], probe: Trial) -> None:
            if (value := _value_of(probe)) is not None and self._drafted(probe) == own:
                found.append(Seen(probe.work.resolved, value))

        return self.history.memo.fold(f"communication beside {own}", self.history.probes, list, add)

    @cached_property
    def _measured(self) -> dict[tuple[str, ...], float]:
        own = self._pass

        def add(found: dict[tuple[str, ...], float], probe: Trial) -> None:
            if (value := _value_of(probe)) is not None and self._drafted(probe) == own:
                found[self._key(probe.work.resolved)] = value

        return self.history.memo.fold(f"communication times beside {own}", self.history.probes, dict, add)

    def _drafted(self, probe: Trial) -> int | None:
        return self.history.space.num_drafted(probe.work.resolved, self.history.facts)

    @cached_property
    def _surrogate(self) -> Surrogate:
        effects = Effects(dict.fromkeys(self.history.space.probe_parameters, EFFECT))
        return Surrogate(self.history.space, effects, _shown(self._rows), NOISE_SD)

    @cached_property
    def _share(self) -> float:
        """The communication's share of a step at the base."""
        shares, base = [], self.history.base
        time = None if base is None else self._measured.get(self._key(base))
        for trial in tallies.launches_of(self.history, base) if time and base is not None else ():
            levels = trial.record.measurement.levels if trial.record and trial.record.measurement else ()
            if trial.is_measured and levels and time:
                shares.append(time / (1000.0 * min(levels, key=lambda level: level.concurrency).step_ms_p50))
        return min(statistics.median(shares), 0.9) if shares else USUAL_SHARE


def communication_of(history: History) -> Communication:
    """Return the communication times of a study, made anew only where a probe, or another launch of the base, tells."""
    base = history.base
    launches = () if base is None else tallies.launches_of(history, base)
    of = (num_ended(history, "probes"), *history.probes[:1], sum(trial.is_measured for trial in launches), str(base))
    return history.memo.derived(
        "communication", (*of, history.space, facts_of(history)), lambda: Communication(history)
    )


def _shown(rows: list[Seen]) -> list[Seen]:
    if len(rows) <= BEST_ROWS + LATEST_ROWS:
        return rows
    latest = rows[-LATEST_ROWS:]
    best = sorted(range(len(rows) - LATEST_ROWS), key=lambda index: rows[index].value)[:BEST_ROWS]
    return [*(rows[index] for index in sorted(best)), *latest]


def _value_of(probe: Trial) -> float | None:
    return probe.outcome.value or None if probe.is_measured and probe.outcome is not None else None
