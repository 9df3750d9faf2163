"""Step 5: the launch that is expected to improve most on the best known one, weighed by how likely it works at all.

What launches are expected to measure comes from a Gaussian process (`surrogate`), how likely one fails from the map:
what may have caused the failures seen, and values and pairs of values that were never seen to work. Candidates are all
single changes of the best few assignments, and what climbing from the most promising of them reaches.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice, repeat

from agent.propose import second_launch, sums
from agent.propose.changes import Changes
from agent.propose.closed import of_closed, of_measured
from agent.propose.communication import Communication, communication_of
from agent.propose.drafting import Drafting
from agent.propose.features import Values
from agent.propose.gradient import gains
from agent.propose.history import History
from agent.propose.points import points_of, values_of
from agent.propose.refused import Refused
from agent.propose.risk import Risk
from agent.propose.surrogate import Beforehand, Effects, Expected, Seen, Surrogate, tables_of, together
from agent.store.trial import Kind, Trial, Work
from search_spaces import Assignment, Scalar

EFFECT, COLLECTIVES_EFFECT, DRAFT_EFFECT = 0.15, 0.05, 0.02
"""Expected size of one value's effect on the objective, as a share of it, of what a probe has settled, and of a draft
length whose effect is worked out."""
KIND_EFFECT = 0.1
"""The same of another kind of collective, beyond its communication time: it is fused with what follows, or takes cores
away from what runs beside it, and no probe sees that."""
DIGITS = 9
"""Decimals of an expected improvement that count: what only rounding tells apart must not depend on the machine."""
BEST_ROWS, LATEST_ROWS = 60, 60
"""Measured assignments that the process is fitted to in a long study."""
RIVALS = 8
"""How many of the best assignments a launch may lift above the leader."""
BREADTH, DEPTH = 3, 4
"""How many of the best assignments are changed, and then of the most promising changes, and how many times."""


def propose(history: History) -> Work | None:
    """Return the next launch, or None where nothing was measured yet or nothing is left to try."""
    if history.incumbent is None:
        return None
    replaced, refused = None, Refused(history)
    for candidate in improvement_of(history).ranked():
        if (failed := second_launch.once_failed(history, candidate)) is not None:
            return failed
        if refused.again(candidate):
            continue
        num_refusals = len(history.refusals)
        work = history.admit(candidate, Kind.SEARCH, "expected to improve", base=history.incumbent)
        if work is None:
            refused.note(candidate, num_refusals)
        elif work.resolved == candidate:
            return work
        replaced = replaced or work  # something else would run: it is worth what that is worth, not what was asked for
    return replaced


def improvement_of(history: History) -> Improvement:
    """Return what launches are expected to improve: worked out once for all steps that look at the same history."""
    name = "improvement evenly" if history.is_even else "improvement"
    return history.memo.derived(name, (history,), partial(Improvement, history))


@dataclass(frozen=True)
class Improvement:
    """Candidates for the next launch, and what each of them is worth."""

    history: History
    _promises: dict[str, float] = field(default_factory=dict)
    _chances: dict[str, float] = field(default_factory=dict)

    def ranked(self) -> Iterator[Assignment]:
        """Yield the candidates, the most promising first: expected improvement times the chance that it works."""
        points = {key: trial.work.resolved for key, trial in self._open_failures.items()}
        changed: set[str] = set()
        for key in dict.fromkeys((*self.expected_ranking()[:BREADTH], *self.history.ranking[:1])):
            points |= self._changes.of(self.history.measured[key])
        for _ in range(DEPTH):  # the most promising ones are changed further, one change at a time
            self._look_at(points)
            best = [key for key in islice(self._best_first(points), BREADTH) if key not in changed]
            changed.update(best)
            for key in best:
                points |= self._changes.of(points[key])
        self._look_at(points)
        yield from (points[key] for key in self._best_first(points))

    def expected_ranking(self) -> list[str]:
        """Return the keys of the measured assignments, best expectation first: a lucky launch alone is not believed."""
        expected = self.expectations()
        return sorted(expected, key=lambda key: (-expected[key][0], key))

    def expectations(self) -> dict[str, tuple[float, float]]:
        """Return key → mean and standard deviation of the logarithm of what each measured assignment is worth.

        What is in flight is expected to measure what the others say, so that it says nothing of them.
        """
        return of_closed(self.history, "expectations", self._expectations)

    def _expectations(self) -> dict[str, tuple[float, float]]:
        points = points_of(self.history)
        keys = [points.of(row.assignment).key for row in self._rows]
        rows = zip(keys, self._expected_rows.mean, self._expected_rows.sd, strict=True)
        return {key: (float(mean), float(sd)) for key, mean, sd in rows if key in self.history.measured}

    @property
    def noise_sd(self) -> float:
        """Standard deviation of a single launch, as a share of the objective, by all launches together."""
        return self._measured.belief.noise_sd

    def expected(self, points: Sequence[Assignment]) -> list[float]:
        """Return what each of these assignments is expected to measure, in logarithms of the objective."""
        return [float(mean) for mean in self._surrogate.expect(points, self._known(points)).mean]

    def _best_first(self, points: Mapping[str, Assignment]) -> Iterator[str]:
        """Yield keys by worth; the chance to work is only looked at where the improvement alone would be enough."""
        open_ = (key for key in points if not self._is_launched(key))
        by_promise = sorted(((self._promises[key], key) for key in open_), key=lambda row: (-row[0], row[1]))
        waiting: list[tuple[float, str]] = []
        for promise, key in by_promise:
            while waiting and -waiting[0][0] >= promise:
                yield heapq.heappop(waiting)[1]
            heapq.heappush(waiting, (-promise * self._chance(key, points[key]), key))
        while waiting:
            yield heapq.heappop(waiting)[1]

    def _look_at(self, points: Mapping[str, Assignment]) -> None:
        """Work out the expected improvement of all open points that were not looked at yet, in one go."""
        keys = [key for key in points if key not in self._promises and not self._is_launched(key)]
        if keys:
            wanted = [points[key] for key in keys]
            found = gains(self._surrogate.outlook(wanted, self._known(wanted), self._rivals))
            for key, gain in zip(keys, found, strict=True):
                self._promises[key] = round(float(gain), DIGITS)

    def _chance(self, key: str, point: Assignment) -> float:
        if key not in self._chances:
            self._chances[key] = self._risk.chance(point)
        return self._chances[key]

    def _is_launched(self, key: str) -> bool:
        is_known = key in self._launched.closed or key in self._launched.running
        return is_known and key not in self._open_failures

    @cached_property
    def _launched(self) -> sums.Names:
        return sums.launched_keys(self.history)

    @cached_property
    def _open_failures(self) -> Mapping[str, Trial]:
        """Launches that failed and may be launched a second time."""
        return second_launch.open_failures(self.history)

    @cached_property
    def _changes(self) -> Changes:
        return Changes(self.history)

    @cached_property
    def _risk(self) -> Risk:
        return Risk(self.history)

    @cached_property
    def _communication(self) -> Communication:
        return communication_of(self.history)

    @cached_property
    def _drafting(self) -> Drafting:
        make = partial(Drafting, self.history, self._communication)
        return of_measured(self.history, "drafting", make, (self._communication,))

    def _known(self, points: Sequence[Assignment]) -> list[Beforehand]:
        """Return what is known of some assignments before they are launched."""
        known, names = self._known_already, tuple(self.history.space.parameters)
        keys = [values_of(point, names) for point in points]
        if missing := {key: point for key, point in zip(keys, points, strict=True) if key not in known}:
            asked = list(missing.values())
            found = together(self._communication.effects(asked), self._drafting.effects(asked))
            known.update(zip(missing, found, strict=True))
        return [known[key] for key in keys]

    @cached_property
    def _known_already(self) -> dict[tuple[Scalar, ...], Beforehand]:
        return self.history.memo.derived("known beforehand", (self._communication, self._drafting), dict)

    @cached_property
    def _measured(self) -> Surrogate:
        """The process, fitted to what was measured."""
        fit = partial(Surrogate, self.history.space, self._effects, self._rows, self.history.spread, self._tables)
        return of_closed(self.history, "fitted to what was measured", fit)

    @cached_property
    def _surrogate(self) -> Surrogate:
        """The same; launches in flight count as measured as expected, so that nobody proposes their neighbours."""
        if not self._in_flight:
            return self._measured
        known = self._known(self._in_flight)
        expected = self._measured.expect(self._in_flight, known).mean
        rows = (Seen(*row) for row in zip(self._in_flight, map(math.exp, expected), repeat(1), known, strict=False))
        known_of_all = self._measured.belief, self._tables, self._measured.ruinous
        return Surrogate(self.history.space, self._effects, [*self._rows, *rows], *known_of_all)

    @cached_property
    def _tables(self) -> Sequence[Values]:
        space, effects = self.history.space, self._effects
        return self.history.memo.derived("tables", (space, str(effects)), partial(tables_of, space, effects))

    @property
    def _in_flight(self) -> list[Assignment]:
        return self.history.in_flight.pending

    @cached_property
    def _effects(self) -> Effects:
        """How large effects are expected to be.

        What only changes the collectives was settled by probes, what draft lengths do is worked out.
        """
        space = self.history.space
        settled = dict.fromkeys(space.draft_length_names if self._drafting.is_known else (), DRAFT_EFFECT)
        if self._communication.is_known:
            probed = [name for name in space.probe_parameters if not space.parameters[name].effect_beyond_collectives]
            settled = {**dict.fromkeys(probed, COLLECTIVES_EFFECT), **settled}
        kinds = [name for name in settled if name in self._changes.hanging and space.parameters[name].seen_by_probe]
        kept = dict.fromkeys(kinds, KIND_EFFECT)
        return Effects(
            {name: EFFECT for name in space.parameters if name not in settled},
            {name: size for name, size in settled.items() if name not in kept},
            kept,
        )

    @cached_property
    def _rows(self) -> list[Seen]:
        return of_closed(self.history, "rows", self._rows_shown)

    def _rows_shown(self) -> list[Seen]:
        """What the process is fitted to: of a long study the best and the latest, so that it does not grow."""
        history, keys = self.history, list(self.history.measured)
        if len(keys) > BEST_ROWS + LATEST_ROWS:
            best = history.values.best(BEST_ROWS)
            keys = [key for key in keys[:-LATEST_ROWS] if key in best] + keys[-LATEST_ROWS:]
        rows = [(history.measured[key], history.mean(key), len(history.values[key])) for key in keys]
        # What was stopped early is a launch like any other: its requests say little less than all would have said. They
        # have rows of their own: without them, two more of fourteen long studies of a small space took a lucky launch
        # for the best.
        rows += [(point, value, 1) for point, value in sums.latest_stopped_early(history, LATEST_ROWS)]
        known = self._known([point for point, _, _ in rows])
        return [Seen(*row, effect) for row, effect in zip(rows, known, strict=True)]

    @cached_property
    def _rivals(self) -> list[int]:
        """Places of the rows that are expected to be best, the best first."""
        mean = self._expected_rows.mean
        return heapq.nsmallest(RIVALS, range(len(mean)), key=lambda place: (-round(float(mean[place]), DIGITS), place))

    @cached_property
    def _expected_rows(self) -> Expected:
        """What is expected of the rows that the process is fitted to."""
        return of_closed(self.history, "expected of the rows", self._measured.expect_rows)
