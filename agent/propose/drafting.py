"""What another draft length does, worked out from one launch with speculation and one without instead of tried.

A launch reports how often each drafted position was accepted, so the tokens of a pass are known for every shorter draft
and can be continued for a longer one. What one drafted token adds to a step is the difference to the baseline's step.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.propose.communication import Communication
from agent.propose.history import History
from agent.propose.points import Points, points_of
from agent.propose.surrogate import NOTHING, Beforehand
from agent.propose.tokens import Token, Tokens, Told
from agent.store.trial import Trial
from runners.contract import LevelMeasurement
from search_spaces import Assignment, assignment_key

CHEAPER = 0.5
"""How much of what made a step shorter made a drafted token cheaper too: 1 all of it, so that its share stays the same,
0 none, so that its time does. Draft lengths of recorded studies are foretold without bias half-way."""
MOST_PAIRS = 120
"""Pairs that a token's share is taken from in a long study."""
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
class Drafting:
    """How the objective depends on the draft length, as far as a study knows."""

    history: History
    communication: Communication | None = None
    """That of the same history, where it is at hand."""

    @property
    def is_known(self) -> bool:
        """True when a launch with speculation says how often its drafts are accepted."""
        return self._reference is not None

    def effects(self, points: Sequence[Assignment]) -> list[Beforehand]:
        """Return what the draft length alone does to the objective's logarithm, relative to the best launch's."""
        seen = self._reference
        if seen is None:
            return [NOTHING] * len(points)
        known, found = self._known, []
        for point, log_us in zip(points, self._log_us(points), strict=True):
            length = self._length(point)
            place = (seen.drafted if length is None else length, log_us)
            if place not in known:
                known[place] = self._effect(seen, *place)
            found.append(known[place])
        return found

    @cached_property
    def _known(self) -> dict[tuple[int, float], Beforehand]:
        """Draft length and logarithm of the communication time → their effect, as far as it was asked."""
        return {}

    def _log_us(self, points: Sequence[Assignment]) -> list[float]:
        """Return the logarithm of the communication time beside each, 0 where no probe told one."""
        if not self._communication.is_known:
            return [0.0] * len(points)
        return [round(math.log(time), 1) for time in self._communication.times(points)]

    def _length(self, point: Assignment) -> int | None:
        """Return how many tokens an assignment drafts, 0 without speculation, None where its values do not say."""
        return self._points.of(point).length

    @cached_property
    def _points(self) -> Points:
        return points_of(self.history)

    def _effect(self, seen: _Pass, length: int, log_us: float) -> Beforehand:
        """Return the effect and its doubts: the one that the best launch shares, and that of other collectives."""
        gain = math.log(_emitted(seen, length) / _emitted(seen, seen.drafted))
        far = abs(log_us - self._leaders_log_us)
        slower, doubt = 0.0, EACH_SD * (length - seen.drafted)
        for level, tokens in self._tokens.items():
            token = _beside(tokens.beside(log_us), seen, level)
            there, here = 1.0 + token.share * length, 1.0 + token.share * seen.drafted
            slower += math.log(there / here) / len(self._tokens)
            doubt += token.sd * (length / there - seen.drafted / here) / len(self._tokens)
        shared = math.exp(-(far**2))
        return Beforehand(gain - slower, (doubt * shared, doubt * math.sqrt(1.0 - shared**2)))

    @cached_property
    def _leaders_log_us(self) -> float:
        return self._log_us([self.history.measured[self._leader]])[0] if self._leader is not None else 0.0

    @cached_property
    def _communication(self) -> Communication:
        return self.communication or Communication(self.history)

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

    @property
    def _reference(self) -> _Pass | None:
        return None if self._leader is None else self._passes[self._leader]

    @cached_property
    def _leader(self) -> str | None:
        """Key of the best measured assignment that drafts as many tokens as its values say."""
        for key in self.history.ranking:
            seen = self._passes.get(key)
            if seen is not None and seen.drafted and seen.drafted == self._length(self.history.measured[key]):
                return key
        return None

    @cached_property
    def _tokens(self) -> dict[int, Tokens]:
        """Concurrency → what one drafted token adds to a step; a single entry where no launch says.

        From every assignment that was measured both with and without speculation, each as sure as its launches make it,
        and from what is usual: by the luckiest launch alone, drafting would look cheaper than it is.
        """
        told: dict[int, list[Told]] = {}
        pairs = list(self._pairs)[-MOST_PAIRS:]
        beside = Counter(plain for key, plain in pairs if key in self._passes)
        for key, plain in pairs:
            seen, without = self._passes.get(key), self._passes[plain]
            if seen is not None and seen.drafted:
                # Several share a launch without speculation: together they know no more of it than it tells.
                variance = 1.0 / seen.num_launches + beside[plain] / without.num_launches
                error = self.history.noise_sd * math.sqrt(variance)
                log_us = self._log_us([self.history.measured[key]])[0]
                for level, slower in _slower(seen, without).items():
                    each = Told(slower, error, seen.drafted, without.step_ms[level], log_us)
                    told.setdefault(level, []).append(each)
        return {level: Tokens(found) for level, found in told.items()} or {0: Tokens()}


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


def _beside(token: Token, seen: _Pass, level: int) -> Token:
    """Return what a token adds beside the values of another assignment, where a step takes less time."""
    if token.plain_ms <= 0.0 or seen.step_ms.get(level, 0.0) <= 0.0:
        return token
    plain_ms = seen.step_ms[level] / (1.0 + token.share * seen.drafted)
    dearer = max(token.plain_ms / plain_ms, 1.0) ** (1.0 - CHEAPER)
    return Token(token.share * dearer, token.sd * dearer, plain_ms)


def _slower(seen: _Pass, without: _Pass) -> dict[int, float]:
    """Return the logarithm of the ratio of the steps for each level where both report one; a server may not (0 ms)."""
    return {
        level: math.log(step_ms / without.step_ms[level])
        for level, step_ms in seen.step_ms.items()
        if step_ms > 0.0 and without.step_ms.get(level, 0.0) > 0.0
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
