"""What another draft length does, worked out from one launch with speculation and one without instead of tried.

A launch reports how often each drafted position was accepted, so the tokens of a pass are known for every shorter draft
and can be continued for a longer one. What one drafted token adds to a step is the difference to the baseline's step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.propose.history import History
from agent.propose.surrogate import NOTHING, Beforehand
from agent.store.trial import Trial
from runners.contract import LevelMeasurement
from search_spaces import Assignment, assignment_key

USUAL_SHARE, USUAL_SD = 0.12, 0.06
"""What one drafted token adds to a step, as a share of it, and its standard deviation, before any launch says."""
ELSEWHERE_SD = 0.15
"""Standard deviation of a drafted token's share of a step, as a share of it: it was seen beside other values."""
CHEAPER = 0.5
"""How much of what made a step shorter made a drafted token cheaper too: 1 all of it, so that its share stays the same,
0 none, so that its time does. Draft lengths of recorded studies are foretold without bias half-way."""
LEAST_SD = 0.001
"""Standard deviation below which no share is believed to be known."""
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
    num_launches: int


@dataclass(frozen=True)
class _Token:
    """What one drafted token adds to a step."""

    share: float
    """Of a step without speculation."""
    sd: float
    plain_ms: float
    """That step, where the share was measured; 0 where it was not."""

    def beside(self, seen: _Pass, level: int) -> _Token:
        """Return the same beside the values of another assignment, where a step takes less time."""
        if self.plain_ms <= 0.0 or seen.step_ms.get(level, 0.0) <= 0.0:
            return self
        plain_ms = seen.step_ms[level] / (1.0 + self.share * seen.drafted)
        dearer = max(self.plain_ms / plain_ms, 1.0) ** (1.0 - CHEAPER)
        return _Token(self.share * dearer, self.sd * dearer, plain_ms)


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
        for level, known in self._tokens.items():
            token = known.beside(seen, level)
            there, here = 1.0 + token.share * length, 1.0 + token.share * seen.drafted
            slower += math.log(there / here) / len(self._tokens)
            doubt += token.sd * (length / there - seen.drafted / here) / len(self._tokens)
        return Beforehand(gain - slower, (doubt,))

    @cached_property
    def _passes(self) -> dict[str, _Pass]:
        """Key of a measured assignment → its passes, where the launches tell."""
        folded: dict[str, _Launched] = self.history.memo.fold("passes", self.history.trials, dict, _add_levels)
        return {key: each.passes for key, each in folded.items() if each.passes is not None}

    @property
    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of measured assignments, each with that of the same without speculation where it is known."""

        def add(found: dict[str, dict[str, None]], trial: Trial) -> None:
            if trial.is_measured:
                plain = assignment_key(self.history.without_speculation(trial.work.resolved))
                found[plain] = {**found.get(plain, {}), trial.work.key: None}

        pairs: dict[str, dict[str, None]] = self.history.memo.fold("plain", self.history.trials, dict, add)
        known = (plain for plain in pairs if plain in self._passes and not self._passes[plain].drafted)
        yield from ((key, plain) for plain in known for key in pairs[plain])

    @cached_property
    def _reference(self) -> _Pass | None:
        """The passes of the best measured assignment that drafts as many tokens as its values say."""
        for key in self.history.ranking:
            seen = self._passes.get(key)
            if seen is not None and seen.drafted and seen.drafted == self._length(self.history.measured[key]):
                return seen
        return None

    @cached_property
    def _tokens(self) -> dict[int, _Token]:
        """Concurrency → what one drafted token adds to a step; a single entry where no launch says.

        From every assignment that was measured both with and without speculation, each as sure as its launches make it,
        and from what is usual: by the luckiest launch alone, drafting would look cheaper than it is.
        """
        told: dict[int, list[tuple[float, float, float]]] = {}
        for key, plain in self._pairs:
            seen, without = self._passes.get(key), self._passes[plain]
            if seen is not None and seen.drafted:
                error = self.history.noise_sd * math.sqrt(1.0 / seen.num_launches + 1.0 / without.num_launches)
                for level, share in _shares(seen, without).items():
                    sd = error * (1.0 + share * seen.drafted) / seen.drafted
                    told.setdefault(level, []).append((share, sd, without.step_ms[level]))
        return {level: _token(found) for level, found in told.items()} or {0: _token([])}


@dataclass(frozen=True)
class _Launched:
    """The levels that the launches of an assignment measured, and what they say of its passes."""

    levels: tuple[LevelMeasurement, ...]
    passes: _Pass | None


def _add_levels(found: dict[str, _Launched], trial: Trial) -> None:
    if trial.is_measured and trial.record and trial.record.measurement:
        known = found.get(trial.work.key)
        levels = (*(known.levels if known is not None else ()), *trial.record.measurement.levels)
        found[trial.work.key] = _Launched(levels, _pass_of(levels) if levels else None)


def _token(told: Sequence[tuple[float, float, float]]) -> _Token:
    """Return what launches told of a token: its share, the standard deviation of that, the step without it in ms."""
    weights = [(USUAL_SHARE, USUAL_SD**-2), *((share, max(sd, LEAST_SD) ** -2) for share, sd, _ in told)]
    total = math.fsum(weight for _, weight in weights)
    share = math.fsum(each * weight for each, weight in weights) / total
    plain_ms = statistics.fmean(ms for _, _, ms in told) if told else 0.0
    return _Token(share, math.hypot(total**-0.5, ELSEWHERE_SD * share), plain_ms)


def _shares(seen: _Pass, without: _Pass) -> dict[int, float]:
    """Return a drafted token's share of a step for each level where both report one; a server may not (0 ms)."""
    return {
        level: max(step_ms / without.step_ms[level] - 1.0, 0.0) / seen.drafted
        for level, step_ms in seen.step_ms.items()
        if without.step_ms.get(level, 0.0) > 0.0
    }


def _pass_of(levels: Sequence[LevelMeasurement]) -> _Pass:
    drafted = min(len(level.acceptance_per_position) for level in levels)
    accepted = tuple(
        statistics.fmean(level.acceptance_per_position[position] for level in levels) for position in range(drafted)
    )
    steps: dict[int, list[float]] = {}
    for level in levels:
        steps.setdefault(level.concurrency, []).append(level.step_ms_p50)
    launches = max(len(found) for found in steps.values())
    return _Pass(drafted, accepted, {level: statistics.fmean(found) for level, found in steps.items()}, launches)


def _emitted(seen: _Pass, length: int) -> float:
    """Return the tokens of one pass with so many drafted ones; beyond those seen, acceptance goes on falling."""
    first, *_, last = (1.0, *seen.accepted)
    falls = min((last / first) ** (1.0 / seen.drafted), 1.0) if last > 0 else 0.0
    known = seen.accepted[:length]
    beyond = (last * falls ** (further + 1) for further in range(length - len(known)))
    return 1.0 + sum(known) + sum(beyond)
