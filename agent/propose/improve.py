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

from agent.effects import rewritten
from agent.propose import second_launch, sums
from agent.propose.closed import of_closed, of_measured
from agent.propose.communication import Communication, communication_of
from agent.propose.drafting import Drafting
from agent.propose.gradient import gains
from agent.propose.history import History
from agent.propose.points import points_of, values_of
from agent.propose.prepared import kept, replaced_values
from agent.propose.refused import Refused
from agent.propose.risk import Risk
from agent.propose.surrogate import Beforehand, Effects, Expected, Seen, Surrogate, tables_of, together
from agent.store.trial import Kind, Work
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
    for candidate in Improvement(history).ranked():
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
        for key in dict.fromkeys((*self.expected_ranking()[:BREADTH], *self.history.ranking[:1])):
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
        expected = self.expectations()
        return sorted(expected, key=lambda key: (-expected[key][0], key))

    def expectations(self) -> dict[str, tuple[float, float]]:
        """Return key → mean and standard deviation of the logarithm of what each measured assignment is worth."""
        points = points_of(self.history)
        keys = [points.of(row.assignment).key for row in self._rows]
        rows = zip(keys, self._expected_rows.mean, self._expected_rows.sd, strict=True)
        return {key: (float(mean), float(sd)) for key, mean, sd in rows if key in self.history.measured}

    @property
    def noise_sd(self) -> float:
        """Standard deviation of a single launch, as a share of the objective, by all launches together."""
        return self._surrogate.belief.noise_sd

    def expected(self, points: Sequence[Assignment]) -> list[float]:
        """Return what each of these assignments is expected to measure, in logarithms of the objective."""
        return [float(mean) for mean in self._surrogate.expect(points, self._known(points)).mean]

    def _changes(self, start: Assignment) -> dict[str, Assignment]:
        """Return the single changes of an assignment.

        A value that gives other parameters a meaning (a way to draft and its length) comes with each of theirs as well:
        whether it is worth anything may hang on them.
        """
        return kept(self.history, f"single changes {self._replaced}", str(start), lambda: self._changed(start))

    def _changed(self, start: Assignment) -> dict[str, Assignment]:
        space, points, found = self.history.space, points_of(self.history), {}
        for name in space.parameters:
            hanging = self._hanging.get(name, ())
            for change in space.single_changes(start, (name,)):
                point = self._as_it_runs(change)
                found[points.of(point).key] = point
                gained = tuple(other for other in hanging if self._gains(point, start, other))
                further = map(self._as_it_runs, space.single_changes(point, gained))
                found |= {points.of(each).key: each for each in further}
        return found

    def _gains(self, point: Assignment, start: Assignment, name: str) -> bool:
        """Return whether a parameter has a meaning beside the values of one assignment and not of the other."""
        parameter, facts = self.history.space.parameters[name], self.history.facts
        return parameter.is_active(point, facts) and not parameter.is_active(start, facts)

    @cached_property
    def _hanging(self) -> dict[str, list[str]]:
        """Parameter → those that have a meaning only beside some of its values."""
        found: dict[str, list[str]] = {}
        for name, each in self.history.space.parameters.items():
            for other in each.active_when:
                found.setdefault(other, []).append(name)
        return found

    @cached_property
    def _replaced(self) -> str:
        return replaced_values(self.history)

    def _as_it_runs(self, candidate: Assignment) -> Assignment:
        """Return a candidate without what the engine was seen to replace: a value that does nothing is no new value."""
        space, facts = self.history.space, self.history.facts
        point, replaced = rewritten(space.normalise(candidate, facts), self.history.silent_rewrites)
        return space.normalise(point, facts) if replaced else point

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
        """Work out the expected improvement of all open points that were not looked at yet, in one go."""
        keys = [key for key in points if key not in self._promises and key not in self._launched]
        if keys:
            wanted = [points[key] for key in keys]
            found = gains(self._surrogate.outlook(wanted, self._known(wanted), self._rivals))
            for key, gain in zip(keys, found, strict=True):
                self._promises[key] = round(float(gain), DIGITS)

    def _chance(self, key: str, point: Assignment) -> float:
        if key not in self._chances:
            self._chances[key] = self._risk.chance(point)
        return self._chances[key]

    @cached_property
    def _launched(self) -> set[str]:
        return sums.launched_keys(self.history) - set(second_launch.open_failures(self.history))

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
    def _surrogate(self) -> Surrogate:
        """The process; launches in flight count as measured as expected, so that nobody proposes their neighbours."""
        space, effects = self.history.space, self._effects
        tables = self.history.memo.derived("tables", (space, str(effects)), partial(tables_of, space, effects))
        fit = partial(Surrogate, space, effects, self._rows, self.history.spread, tables)
        measured = of_closed(self.history, "fitted to what was measured", fit)
        if not self._in_flight:
            return measured
        known = self._known(self._in_flight)
        expected = measured.expect(self._in_flight, known).mean
        rows = (Seen(*row) for row in zip(self._in_flight, map(math.exp, expected), repeat(1), known, strict=False))
        return Surrogate(space, effects, [*self._rows, *rows], measured.belief, tables)

    @property
    def _in_flight(self) -> list[Assignment]:
        return self.history.in_flight.pending

    @property
    def _effects(self) -> Effects:
        """How large effects are expected to be.

        What only changes the collectives was settled by probes, what draft lengths do is worked out.
        """
        space = self.history.space
        settled = dict.fromkeys(space.draft_length_names if self._drafting.is_known else (), DRAFT_EFFECT)
        if self._communication.is_known:
            probed = [name for name in space.probe_parameters if not space.parameters[name].effect_beyond_collectives]
            settled = {**dict.fromkeys(probed, COLLECTIVES_EFFECT), **settled}
        kinds = [name for name in settled if name in self._hanging and space.parameters[name].seen_by_probe]
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
        return sorted(range(len(mean)), key=lambda place: (-round(float(mean[place]), DIGITS), place))[:RIVALS]

    @cached_property
    def _expected_rows(self) -> Expected:
        """What is expected of the rows that the process is fitted to."""
        return self._surrogate.expect_rows(len(self._rows))
