"""Step 6: model-based search (TPE) over what survived.

The sampler is fresh for each proposal and works on an in-memory shadow of the study: one row for each resolved
assignment (repeats averaged) and one for each dead end, since TPE counts failures among its good tenth when there are
hundreds. What the map or the duplicates rule out is rejected there and never stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from agent.propose import sums, tallies
from agent.propose.history import History
from agent.propose.memo import Memo
from agent.propose.random_points import random_points
from agent.store.distributions import distributions_of
from agent.store.trial import Kind, Work
from search_spaces import Assignment, Scalar, SearchSpace, assignment_key

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, TrialState

ASKS = 1
"""Samples that may be ruled out before the best one's neighbours are walked instead. Each costs as much as a whole
proposal of Optuna's, and where everything near the best is launched, one in twenty names anything else."""
WALK = 4096
"""Points of the space looked at in that walk."""
BEST_ROWS, RECENT_ROWS = 100, 200
"""Measured assignments that the model is fitted to in a long study. TPE calls at most 25 of them good, so the best
hundred lose nothing, and a proposal does not cost more and more."""
SLOWER_ROWS = 50
"""Assignments that were stopped early, the latest ones, beside these: what is clearly slower takes as long to model as
what is good, and tells less."""
STARTUP_ROWS = 4
"""Rows below which TPE has nothing to model."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the shadow: a mean value, or None for a dead end's representative and for a trial in flight."""

    assignment: tuple[tuple[str, Scalar], ...]
    value: float | None


@dataclass
class Sampler:
    """The shadow study, kept between proposals only to save rebuilding what has not changed."""

    space: SearchSpace
    memo: Memo = field(default_factory=Memo)
    """Sums over the closed trials, which a history may go on with."""
    _rows: dict[tuple[Row, int], FrozenTrial] = field(default_factory=dict)
    """The rows of the last proposal and how many equal ones stood before each, as Optuna has them."""

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions of all parameters, in the space's order."""
        return distributions_of(self.space)

    def sample(self, rows: list[Row], seed: int) -> Iterator[Assignment]:
        """Yield samples of a sampler with this seed that knows exactly `rows`."""
        from optuna.samplers import TPESampler

        study = self._shadow(rows)
        sampler = TPESampler(seed=seed, multivariate=True, constant_liar=False, n_startup_trials=STARTUP_ROWS)
        unused_trial = _frozen(Row(rows[0].assignment, None), self.distributions)
        for _ in range(ASKS):
            yield dict(sampler.sample_relative(study, unused_trial, self.distributions))

    def _shadow(self, rows: list[Row]) -> Study:
        """Return a study that has just these rows. Only those are made that the last one did not have."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        kept, before = {}, Counter[Row]()
        for number, row in enumerate(rows):
            key = (row, before[row])
            before[row] += 1
            trial = self._rows.get(key) or _frozen(row, self.distributions)
            trial.number = number
            kept[key] = trial
        self._rows = kept
        return optuna.create_study(storage=shadow_storage(list(kept.values())), direction="maximize")


def propose(history: History, sampler: Sampler) -> Work | None:
    """Return the sampler's next launch that is neither known nor ruled out, or None when nothing is left."""
    tried: set[str] = set()
    for candidate in _candidates(history, sampler):
        key = assignment_key(candidate)
        if key in tried:
            continue
        tried.add(key)
        if (work := history.admit(candidate, Kind.SEARCH, "model-based", base=history.incumbent)) is not None:
            return work
    return None


def _candidates(history: History, sampler: Sampler) -> Iterator[Assignment]:
    rows = _rows(history)
    if len(rows) >= STARTUP_ROWS:
        yield from sampler.sample(rows, history.seed_for("tpe"))
    yield from _walk(history)


def _walk(history: History) -> Iterator[Assignment]:
    """The best one's neighbours, then random points: a small space is exhausted, a large one is not walked whole."""
    generator = history.random("walk")
    if history.incumbent is not None:
        neighbours = list(history.space.single_changes(history.incumbent))
        generator.shuffle(neighbours)
        yield from neighbours
    yield from random_points(history, generator, WALK)


def _rows(history: History) -> list[Row]:
    """Dead ends first, trials in flight last, so that a closed trial nearly always only adds a row."""
    dead = [Row(tuple(found.observed.items()), None) for found in history.atlas.confirmed]
    measured = [Row(tuple(history.measured[key].items()), history.mean(key)) for key in _modelled(history)]
    measured += [Row(tuple(point.items()), value) for point, value in sums.latest_stopped_early(history, SLOWER_ROWS)]
    in_flight = [Row(tuple(trial.work.resolved.items()), None) for trial in tallies.open_trials(history)[0]]
    return dead + measured + in_flight


def _modelled(history: History) -> list[str]:
    """Return the keys the model is fitted to, oldest first. Old ones leave in blocks, so that rows are mostly added."""
    keys = list(history.measured)
    old = keys[: max(0, len(keys) - BEST_ROWS) // RECENT_ROWS * RECENT_ROWS]
    best = history.values.best(BEST_ROWS, among=len(old))
    return [*(key for key in old if key in best), *keys[len(old) :]]


def _frozen(row: Row, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    from optuna.trial import TrialState, create_trial

    state = TrialState.PRUNED if row.value is None else TrialState.COMPLETE
    return create_trial(state=state, value=row.value, params=dict(row.assignment), distributions=distributions)


def shadow_storage(trials: list[FrozenTrial]) -> BaseStorage:
    """Return a storage whose studies have just these trials: adding them one by one would copy each."""
    from optuna.storages import InMemoryStorage

    class ShadowStorage(InMemoryStorage):
        def get_all_trials(
            self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
        ) -> list[FrozenTrial]:
            return [trial for trial in trials if states is None or trial.state in states]

    return ShadowStorage()
