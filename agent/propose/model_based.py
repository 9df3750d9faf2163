"""Step 6: model-based search (TPE) over what survived.

The sampler is fresh for each proposal and works on an in-memory shadow of the study: one row for each resolved
assignment (repeats averaged) and one for each dead end, since TPE counts failures among its good tenth when there are
hundreds. What the map or the duplicates rule out is rejected there and never stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

from agent.propose import sums, tallies
from agent.propose.closed import of_closed
from agent.propose.history import History
from agent.propose.memo import Memo
from agent.propose.prepared import prepared
from agent.propose.random_points import random_points
from agent.store.distributions import distributions_of
from agent.store.trial import Kind, Work
from search_spaces import Assignment, Scalar, SearchSpace

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
class _Shadows:
    """Rows as Optuna has them. They are kept: only those are made that the last proposal did not have."""

    _rows: Sequence[Row] = ()
    _trials: dict[tuple[Row, int], FrozenTrial] = field(default_factory=dict)
    """Row and how many equal ones stood before it → the same for Optuna."""

    def of(self, rows: Sequence[Row], first: int, distributions: dict[str, BaseDistribution]) -> list[FrozenTrial]:
        """Return trials with these rows, numbered from `first` on."""
        if rows is not self._rows:
            kept, before = {}, Counter[Row]()
            for number, row in enumerate(rows, first):
                key = (row, before[row])
                before[row] += 1
                trial = self._trials.get(key) or _frozen(row, distributions)
                trial.number = number
                kept[key] = trial
            self._rows, self._trials = rows, kept
        return list(self._trials.values())


@dataclass
class Sampler:
    """The shadow study, kept between proposals only to save rebuilding what has not changed."""

    space: SearchSpace
    memo: Memo = field(default_factory=Memo)
    """Sums over the closed trials, which a history may go on with."""
    _closed: _Shadows = field(default_factory=_Shadows)
    _running: _Shadows = field(default_factory=_Shadows)

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions of all parameters, in the space's order."""
        return distributions_of(self.space)

    def sample(self, closed: Sequence[Row], running: Sequence[Row], seed: int) -> Iterator[Assignment]:
        """Yield samples of a sampler with this seed that knows exactly these rows."""
        from optuna.samplers import TPESampler

        study = self._shadow(closed, running)
        sampler = TPESampler(seed=seed, multivariate=True, constant_liar=False, n_startup_trials=STARTUP_ROWS)
        unused_trial = _frozen(Row([*closed, *running][0].assignment, None), self.distributions)
        for _ in range(ASKS):
            yield dict(sampler.sample_relative(study, unused_trial, self.distributions))

    def _shadow(self, closed: Sequence[Row], running: Sequence[Row]) -> Study:
        """Return a study that has just these rows."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        trials = self._closed.of(closed, 0, self.distributions)
        trials += self._running.of(running, len(closed), self.distributions)
        return optuna.create_study(storage=_shadow_storage()(trials), direction="maximize")


def propose(history: History, sampler: Sampler) -> Work | None:
    """Return the sampler's next launch that is neither known nor ruled out, or None when nothing is left."""
    tried, launched = set[str](), sums.launched_keys(history)
    for candidate in _candidates(history, sampler):
        key = prepared(history, candidate).key
        if key in tried or key in launched:
            continue
        tried.add(key)
        if (work := history.admit(candidate, Kind.SEARCH, "model-based", base=history.incumbent)) is not None:
            return work
    return None


def _candidates(history: History, sampler: Sampler) -> Iterator[Assignment]:
    closed = of_closed(history, "rows of the sampler", lambda: _closed_rows(history))
    running = [Row(tuple(trial.work.resolved.items()), None) for trial in tallies.open_trials(history)[0]]
    if len(closed) + len(running) >= STARTUP_ROWS:
        yield from sampler.sample(closed, running, history.seed_for("tpe"))
    yield from _walk(history)


def _walk(history: History) -> Iterator[Assignment]:
    """The best one's neighbours, then random points: a small space is exhausted, a large one is not walked whole."""
    generator = history.random("walk")
    if history.incumbent is not None:
        neighbours = list(history.space.single_changes(history.incumbent))
        generator.shuffle(neighbours)
        yield from neighbours
    yield from random_points(history, generator, WALK)


def _closed_rows(history: History) -> list[Row]:
    """Return a row for each dead end and for what was measured, and for the latest that were stopped early."""
    dead = [Row(tuple(found.observed.items()), None) for found in history.atlas.confirmed]
    measured = [Row(tuple(history.measured[key].items()), history.mean(key)) for key in _modelled(history)]
    slower = sums.latest_stopped_early(history, SLOWER_ROWS)
    return [*dead, *measured, *(Row(tuple(point.items()), value) for point, value in slower)]


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


@cache
def _shadow_storage() -> Callable[[list[FrozenTrial]], BaseStorage]:
    """Return a kind of storage whose studies have just the trials that it is made of: adding each would copy it."""
    from optuna.storages import InMemoryStorage

    class ShadowStorage(InMemoryStorage):
        def __init__(self, trials: list[FrozenTrial]) -> None:
            super().__init__()
            self._shadowed = trials

        def get_all_trials(
            self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
        ) -> list[FrozenTrial]:
            return [trial for trial in self._shadowed if states is None or trial.state in states]

    return ShadowStorage
