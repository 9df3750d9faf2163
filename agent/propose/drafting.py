"""What another draft length does, worked out from one launch with speculation and one without instead of tried.

A launch reports how often each drafted position was accepted, so the tokens of a pass are known for every shorter draft
and can be continued for a longer one. What one drafted token adds to a step is the difference to the baseline's step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.propose.history import History
from agent.propose.surrogate import NOTHING, Beforehand
from runners.contract import LevelMeasurement
from search_spaces import Assignment, assignment_key

USUAL_SHARE = 0.12
"""What one drafted token adds to a step, as a share of it, where no launch says."""
SHARE_SD = 0.4
"""Standard deviation of a drafted token's share of a step, as a share of it: it was seen elsewhere."""
EACH_SD = 0.01
"""Standard deviation of the effect of each token more or less, for what acceptance does not tell."""


@dataclass(frozen=True)
class _Pass:
    """A verify pass as the launches of one assignment saw it."""

    drafted: int
    accepted: tuple[float, ...]
    """How likely each drafted position is accepted."""
    step_ms: Mapping[int, float]
    """Concurrency → milliseconds."""


@dataclass(frozen=True)
class Drafting:
    """How the objective depends on the draft length, as far as a study knows."""

    history: History

    @property
    def is_known(self) -> bool:
        """True when a launch with speculation says how often its drafts are accepted."""
        return self._reference is not None

    def effects(self, points: Sequence[Assignment]) -> list[Beforehand]:
        """Return what the draft length alone does to the objective's logarithm, relative to the best launch's."""
        seen = self._reference
        if seen is None:
            return [NOTHING] * len(points)
        lengths = [self._length(point) for point in points]
        found = {length: self._effect(seen, seen.drafted if length is None else length) for length in set(lengths)}
        return [found[length] for length in lengths]

    def _length(self, point: Assignment) -> int | None:
        """Return how many tokens an assignment drafts, 0 without speculation, None where its values do not say."""
        space, facts = self.history.space, self.history.facts
        if all(point[name] == value for name, value in space.baseline.items()):
            return 0
        names = (name for name in space.draft_length_names if space.parameters[name].is_active(point, facts))
        value = next((point[name] for name in names), None)
        return value if isinstance(value, int) else None

    def _effect(self, seen: _Pass, length: int) -> Beforehand:
        gain = math.log(_emitted(seen, length) / _emitted(seen, seen.drafted))
        slower, doubt = 0.0, EACH_SD * (length - seen.drafted)
        for share in self._token_shares:
            there, here = 1.0 + share * length, 1.0 + share * seen.drafted
            slower += math.log(there / here) / len(self._token_shares)
            doubt += SHARE_SD * (1.0 / here - 1.0 / there) / len(self._token_shares)
        return Beforehand(gain - slower, (doubt,))

    @cached_property
    def _passes(self) -> dict[str, _Pass]:
        """Key of a measured assignment → its passes, where the launches tell."""
        levels: dict[str, list[LevelMeasurement]] = {}
        for trial in self.history.trials:
            if trial.is_measured and trial.record and trial.record.measurement:
                levels.setdefault(trial.work.key, []).extend(trial.record.measurement.levels)
        return {key: _pass_of(found) for key, found in levels.items() if found}

    @cached_property
    def _reference(self) -> _Pass | None:
        """The passes of the best measured assignment that drafts as many tokens as its values say."""
        for key in self.history.ranking:
            seen = self._passes.get(key)
            if seen is not None and seen.drafted and seen.drafted == self._length(self.history.measured[key]):
                return seen
        return None

    @cached_property
    def _token_shares(self) -> list[float]:
        """What one drafted token adds to a step, as a share of the step without speculation, for each level.

        From the best measured assignment that was also measured without speculation; the usual where none was.
        """
        for key in self.history.ranking:
            seen = self._passes.get(key)
            if seen is not None and seen.drafted:
                plain = self.history.without_speculation(self.history.measured[key])
                without = self._passes.get(assignment_key(plain))
                if without is not None and not without.drafted and (shares := _shares(seen, without)):
                    return shares
        return [USUAL_SHARE]


def _shares(seen: _Pass, without: _Pass) -> list[float]:
    """Return a drafted token's share of a step for each level where both report one; a server may not (0 ms)."""
    return [
        max(step_ms / without.step_ms[level] - 1.0, 0.0) / seen.drafted
        for level, step_ms in seen.step_ms.items()
        if without.step_ms.get(level, 0.0) > 0.0
    ]


def _pass_of(levels: Sequence[LevelMeasurement]) -> _Pass:
    drafted = min(len(level.acceptance_per_position) for level in levels)
    accepted = tuple(
        statistics.fmean(level.acceptance_per_position[position] for level in levels) for position in range(drafted)
    )
    steps: dict[int, list[float]] = {}
    for level in levels:
        steps.setdefault(level.concurrency, []).append(level.step_ms_p50)
    return _Pass(drafted, accepted, {level: statistics.fmean(found) for level, found in steps.items()})


def _emitted(seen: _Pass, length: int) -> float:
    """Return the tokens of one pass with so many drafted ones; beyond those seen, acceptance goes on falling."""
    first, *_, last = (1.0, *seen.accepted)
    falls = min((last / first) ** (1.0 / seen.drafted), 1.0) if last > 0 else 0.0
    known = seen.accepted[:length]
    beyond = (last * falls ** (further + 1) for further in range(length - len(known)))
    return 1.0 + sum(known) + sum(beyond)
