"""Step 5: the launch that is expected to improve most on the best known one, weighed by how likely it works at all.

What launches are expected to measure comes from a Gaussian process (`surrogate`), how likely one fails from the map:
what may have caused the failures seen, and values and pairs of values that were never seen to work. Candidates are all
single changes of the best few assignments, and what climbing from the most promising of them reaches.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from agent.deadends.explain import LEAST_SHARE
from agent.propose import second_launch
from agent.propose.communication import Communication
from agent.propose.history import History
from agent.propose.surrogate import Seen, Surrogate
from agent.store.trial import Kind, Work
from search_spaces import Assignment, Conjunction, assignment_key, matches_all

NEW_VALUE_FAILS, NEW_PAIR_FAILS = 0.15, 0.01
"""How likely a value, or two values together, that never were seen to work make a launch fail."""
EFFECT, COLLECTIVES_EFFECT = 0.15, 0.03
"""Expected size of one value's effect on the objective, as a share of it, and of what a probe has settled."""
STARTS = 3
"""Best assignments that are changed, and most promising changes that are changed further."""
CLIMBS = 4
"""Changes in a row that a climb makes at most."""

_Value = tuple[str, str]


def propose(history: History) -> Work | None:
    """Return the next launch, or None where nothing was measured yet or nothing is left to try."""
    if history.incumbent is None:
        return None
    for candidate in Improvement(history).ranked():
        if (failed := second_launch.once_failed(history, candidate)) is not None:
            return failed
        if (work := history.admit(candidate, Kind.SEARCH, "expected to improve", base=history.incumbent)) is not None:
            return work
    return None


@dataclass(frozen=True)
class Improvement:
    """Candidates for the next launch, and what each of them is worth."""

    history: History

    def ranked(self) -> Iterator[Assignment]:
        """Yield the candidates, the most promising first: expected improvement times the chance that it works."""
        points: dict[str, Assignment] = {}
        for key in self.history.ranking[:STARTS]:
            points |= self._changes(self.history.measured[key])
        points |= {key: trial.work.resolved for key, trial in second_launch.open_failures(self.history).items()}
        first = list(self._best_first(points))
        for start in first[:STARTS]:
            points |= self._climb(start)
        yield from self._best_first(points)

    def expected_ranking(self) -> list[str]:
        """Return the keys of the measured assignments, best expectation first: a lucky launch alone is not believed."""
        expected = self._surrogate.expect([row.assignment for row in self._rows], [row.known for row in self._rows])
        by_mean = sorted(zip(expected.mean, self.history.measured, strict=True), key=lambda row: (-row[0], row[1]))
        return [key for _, key in by_mean]

    def _climb(self, start: Assignment) -> dict[str, Assignment]:
        """Return what is met on the way up from a candidate, one change at a time."""
        met: dict[str, Assignment] = {}
        here = start
        for _ in range(CLIMBS):
            around = self._changes(here)
            met |= around
            best = next(self._best_first(around | {assignment_key(here): here}), here)
            if best == here:
                break
            here = best
        return met

    def _changes(self, start: Assignment) -> dict[str, Assignment]:
        space, facts = self.history.space, self.history.facts
        points = (space.normalise(change, facts) for change in space.single_changes(start))
        return {assignment_key(point): point for point in points}

    def _best_first(self, points: Mapping[str, Assignment]) -> Iterator[Assignment]:
        """Yield by worth; the chance to work is only looked at where the improvement alone would be enough."""
        keys = [key for key in points if key not in self._launched]
        promises = self._improvements([points[key] for key in keys])
        by_promise = sorted(zip(promises, keys, strict=True), key=lambda row: (-row[0], row[1]))
        waiting: list[tuple[float, str]] = []
        for promise, key in by_promise:
            while waiting and -waiting[0][0] >= promise:
                yield points[heapq.heappop(waiting)[1]]
            heapq.heappush(waiting, (-promise * self._chance(points[key]), key))
        while waiting:
            yield points[heapq.heappop(waiting)[1]]

    def _improvements(self, points: Sequence[Assignment]) -> list[float]:
        if not points:
            return []
        expected = self._surrogate.expect(points, self._communication.effects(points))
        gains = expected.mean - self._bar
        return [_expected_improvement(float(gain), float(sd)) for gain, sd in zip(gains, expected.sd, strict=True)]

    @cached_property
    def _launched(self) -> set[str]:
        return {trial.work.key for trial in self.history.launches} - set(second_launch.open_failures(self.history))

    @cached_property
    def _communication(self) -> Communication:
        return Communication(self.history)

    @cached_property
    def _surrogate(self) -> Surrogate:
        return Surrogate(self.history.space, self._effects, self._rows, self.history.noise_sd)

    @property
    def _effects(self) -> dict[str, float]:
        """What only changes the collectives was settled by probes; little of it is left to launches."""
        is_probed = self._communication.is_known
        return {
            name: COLLECTIVES_EFFECT
            if is_probed and each.seen_by_probe and not each.effect_beyond_collectives
            else EFFECT
            for name, each in self.history.space.parameters.items()
        }

    @cached_property
    def _rows(self) -> list[Seen]:
        history, points = self.history, list(self.history.measured.values())
        known = self._communication.effects(points)
        return [
            Seen(point, history.mean(key), len(history.values[key]), effect)
            for (key, point), effect in zip(history.measured.items(), known, strict=True)
        ]

    @cached_property
    def _bar(self) -> float:
        """What the best measured assignment is expected to be worth: less than its luckiest launch."""
        expected = self._surrogate.expect([row.assignment for row in self._rows], [row.known for row in self._rows])
        return float(max(expected.mean))

    def _chance(self, point: Assignment) -> float:
        """Return how likely a launch of the point works."""
        chance = 1.0
        for causes in self._suspected:
            chance *= 1.0 - sum(share for conditions, share in causes if matches_all(conditions, point))
        values = [(name, repr(value)) for name, value in point.items()]
        new_values = sum(value not in self._known_values for value in values)
        new_pairs = sum(pair not in self._known_pairs for pair in combinations(values, 2))
        return chance * (1 - NEW_VALUE_FAILS) ** new_values * (1 - NEW_PAIR_FAILS) ** new_pairs

    @cached_property
    def _suspected(self) -> list[list[tuple[Conjunction, float]]]:
        return [
            [(each.conditions, each.share) for each in suspicion.explanations if each.share >= LEAST_SHARE / 2]
            for suspicion in self.history.atlas.suspicions
        ]

    @cached_property
    def _known_values(self) -> set[_Value]:
        return {(name, repr(value)) for point in self.history.measured.values() for name, value in point.items()}

    @cached_property
    def _known_pairs(self) -> set[tuple[_Value, _Value]]:
        points = self.history.measured.values()
        listed = ([(name, repr(value)) for name, value in point.items()] for point in points)
        return {pair for values in listed for pair in combinations(values, 2)}


def _expected_improvement(gain: float, sd: float) -> float:
    """Return the expected gain above zero of a normal variable; all in logarithms of the objective."""
    if sd <= 0.0:
        return max(gain, 0.0)
    z = gain / sd
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return gain * 0.5 * (1 + math.erf(z / math.sqrt(2))) + sd * density
