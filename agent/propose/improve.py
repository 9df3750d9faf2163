"""Step 5: the launch that is expected to improve most on the best known one, weighed by how likely it works at all.

What launches are expected to measure comes from a Gaussian process (`surrogate`), how likely one fails from the map:
what may have caused the failures seen, and values and pairs of values that were never seen to work. Candidates are all
single changes of the best few assignments, and what climbing from the most promising of them reaches.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from agent.propose import second_launch
from agent.propose.communication import Communication
from agent.propose.history import History
from agent.propose.risk import Risk
from agent.propose.surrogate import Seen, Surrogate
from agent.store.trial import Kind, Work
from search_spaces import Assignment, assignment_key

EFFECT, COLLECTIVES_EFFECT = 0.15, 0.03
"""Expected size of one value's effect on the objective, as a share of it, and of what a probe has settled."""
BEST_ROWS, LATEST_ROWS = 60, 60
"""Measured assignments that the process is fitted to in a long study."""
BREADTH, DEPTH = 3, 4
"""How many of the best assignments are changed, and then of the most promising changes, and how many times."""


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
    _promises: dict[str, float] = field(default_factory=dict)
    _chances: dict[str, float] = field(default_factory=dict)

    def ranked(self) -> Iterator[Assignment]:
        """Yield the candidates, the most promising first: expected improvement times the chance that it works."""
        points = {key: trial.work.resolved for key, trial in second_launch.open_failures(self.history).items()}
        changed: set[str] = set()
        for key in self.history.ranking[:BREADTH]:
            points |= self._changes(self.history.measured[key])
        for _ in range(DEPTH):  # the most promising ones are changed further, one change at a time
            self._look_at(points)
            best = [key for key in islice(self._best_first(points), BREADTH) if key not in changed]
            changed.update(best)
            for key in best:
                points |= self._changes(points[key])
        self._look_at(points)
        yield from (points[key] for key in self._best_first(points))

    def expected_ranking(self) -> list[str]:
        """Return the keys of the measured assignments, best expectation first: a lucky launch alone is not believed."""
        expected = self._surrogate.expect([row.assignment for row in self._rows], [row.known for row in self._rows])
        keys = [assignment_key(row.assignment) for row in self._rows]
        by_mean = sorted(zip(expected.mean, keys, strict=True), key=lambda row: (-row[0], row[1]))
        return [key for _, key in by_mean if key in self.history.measured]

    def _changes(self, start: Assignment) -> dict[str, Assignment]:
        space, facts = self.history.space, self.history.facts
        points = (space.normalise(change, facts) for change in space.single_changes(start))
        return {assignment_key(point): point for point in points}

    def _best_first(self, points: Mapping[str, Assignment]) -> Iterator[str]:
        """Yield keys by worth; the chance to work is only looked at where the improvement alone would be enough."""
        open_ = (key for key in points if key not in self._launched)
        by_promise = sorted(((self._promises[key], key) for key in open_), key=lambda row: (-row[0], row[1]))
        waiting: list[tuple[float, str]] = []
        for promise, key in by_promise:
            while waiting and -waiting[0][0] >= promise:
                yield heapq.heappop(waiting)[1]
            heapq.heappush(waiting, (-promise * self._chance(key, points[key]), key))
        while waiting:
            yield heapq.heappop(waiting)[1]

    def _look_at(self, points: Mapping[str, Assignment]) -> None:
        """Work out the expected improvement of all points that were not looked at yet, in one go."""
        keys = [key for key in points if key not in self._promises]
        if keys:
            wanted = [points[key] for key in keys]
            expected = self._surrogate.expect(wanted, self._communication.effects(wanted))
            gains = expected.mean - self._bar
            for key, gain, sd in zip(keys, gains, expected.sd, strict=True):
                self._promises[key] = _expected_improvement(float(gain), float(sd))

    def _chance(self, key: str, point: Assignment) -> float:
        if key not in self._chances:
            self._chances[key] = self._risk.chance(point)
        return self._chances[key]

    @cached_property
    def _launched(self) -> set[str]:
        return {trial.work.key for trial in self.history.launches} - set(second_launch.open_failures(self.history))

    @cached_property
    def _risk(self) -> Risk:
        return Risk(self.history)

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
        """What the process is fitted to: of a long study the best and the latest, so that it does not grow."""
        history, keys = self.history, list(self.history.measured)
        if len(keys) > BEST_ROWS + LATEST_ROWS:
            best = set(history.ranking[:BEST_ROWS])
            keys = [key for key in keys[:-LATEST_ROWS] if key in best] + keys[-LATEST_ROWS:]
        rows = [(history.measured[key], history.mean(key), len(history.values[key])) for key in keys]
        # What was stopped early is a launch like any other: its requests say little less than all would have said.
        rows += [(point, value, 1) for point, value in list(history.slower.values())[-LATEST_ROWS:]]
        known = self._communication.effects([point for point, _, _ in rows])
        return [Seen(*row, effect) for row, effect in zip(rows, known, strict=True)]

    @cached_property
    def _bar(self) -> float:
        """What the best measured assignment is expected to be worth: less than its luckiest launch."""
        expected = self._surrogate.expect([row.assignment for row in self._rows], [row.known for row in self._rows])
        return float(max(expected.mean))


def _expected_improvement(gain: float, sd: float) -> float:
    """Return the expected gain above zero of a normal variable; all in logarithms of the objective."""
    if sd <= 0.0:
        return max(gain, 0.0)
    z = gain / sd
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return gain * 0.5 * (1 + math.erf(z / math.sqrt(2))) + sd * density
