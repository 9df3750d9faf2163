"""Trials that end at the same time are closed one by one, and the map learns from all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.campaign import Campaign
from agent.deadends.charter import Charter
from agent.home import Home
from agent.interruption import Interruption
from agent.propose.history import History
from agent.recovery import own_lease
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Kind, Trial
from runners import Exit, Phase, Rung, RunRecord, TrialRequest
from runners.ray_pool import Lost, Running
from tests.support.pool_in_here import PoolInHere
from tests.support.stores import sqlite_store
from tests.support.synthetic_engine import SyntheticEngine, measured

LAUNCHES, SLOTS = 16, 4


class Launched(SyntheticEngine):
    """An engine without probes, in which everything works."""

    rungs = (Rung.FULL,)

    def run(self, request: TrialRequest) -> RunRecord:
        """Measure at once."""
        request = request.model_copy(update={"assignment": {"draft_length": 1, **request.assignment}})
        return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=0.1, measurement=measured(request))


class Broken(Exception):  # noqa: N818 - what breaks is the test's pool
    """Nothing that the loop knows how to go on from."""


class BreaksAtTheThird(PoolInHere):
    """Gives back two of the trials that have ended together, and no third one."""

    given = 0

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Break once enough were given back of several at once."""
        if self.num_submitted > SLOTS:
            self.given += 1
            if self.given == 3:
                raise Broken
        return super().result(task)


class Told:
    """An observer that notes what it is told."""

    def __init__(self) -> None:
        self.closed: list[tuple[Trial, History]] = []

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Nothing."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """Note it."""
        self.closed.append((trial, history))

    def tick(self) -> None:
        """Nothing."""


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    store = sqlite_store(tmp_path)
    store.set_attribute(BUDGET, LAUNCHES)
    return store


def campaign(store: StudyStore, pool: PoolInHere, told: Told, home: Path) -> Campaign:
    """Return the loop as an agent runs it, with several slots."""
    return Campaign(
        store=store,
        runner=Launched(),
        pool=pool,  # type: ignore[arg-type]
        home=Home(home),
        lease=own_lease(),
        environment={},
        observers=(told,),
        interruption=Interruption(),
        slots=SLOTS,
    )


def test_the_map_learns_once_from_what_ended_together(
    store: StudyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[set[object]] = []
    learn = Charter._learn
    monkeypatch.setattr(Charter, "_learn", lambda self, touched: (learned.append(touched), learn(self, touched)))
    told = Told()
    campaign(store, PoolInHere(Launched()), told, tmp_path).run()
    assert [trial.number for trial, _ in told.closed] == [trial.number for trial in store.trials()]
    together: dict[int, list[Trial]] = {}
    for trial, history in told.closed:
        together.setdefault(id(history), []).append(trial)
        assert all(history.trials[each.number].is_closed for each in together[id(history)])
    assert max(map(len, together.values())) == SLOTS
    assert len(learned) <= len(together) < len(told.closed)


def test_each_of_them_is_judged_with_the_baselines_that_were_closed_before_it(
    store: StudyStore, tmp_path: Path
) -> None:
    """Although the map does not know of these yet."""
    told = Told()
    campaign(store, PoolInHere(Launched()), told, tmp_path).run()
    first = next(number for number, (trial, _) in enumerate(told.closed) if trial.work.kind is Kind.BASELINE)
    others = [trial for trial, _ in told.closed[first + 1 :] if trial.work.key != told.closed[first][0].work.key]
    assert others and all(trial.outcome is not None and trial.outcome.output is not None for trial in others)


def test_what_was_closed_is_told_although_the_loop_breaks(store: StudyStore, tmp_path: Path) -> None:
    """The mirror and the screen know what the storage knows."""
    told = Told()
    with pytest.raises(Broken):
        campaign(store, BreaksAtTheThird(Launched()), told, tmp_path).run()
    closed = {trial.number for trial in store.trials() if trial.is_closed}
    assert closed == {trial.number for trial, _ in told.closed} and not all(each.is_closed for each in store.trials())
