"""A database server that is restarted under a study costs it a moment: nothing is lost, nothing is stored twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.errors import StorageError
from agent.outcome import Outcome, OutcomeKind
from agent.store.opening import open_storage
from agent.store.patience import PATIENCE_S, PatientStorage
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Trial
from runners import Exit, Phase, RunRecord
from tests.support.services import Postgres
from tests.support.simulated_study import LEASE
from tests.support.stores import manifest, work

MEASURED = Outcome(kind=OutcomeKind.MEASURED, value=123.5)
RECORD = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=2.5)


class Clock:
    """Time that passes only while somebody pauses; a pause may do something."""

    def __init__(self, on_pause: Callable[[], None] = lambda: None) -> None:
        self.now, self._on_pause = 0.0, on_pause

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self._on_pause()


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Postgres]:
    """The cluster, running again after the test and empty."""
    yield postgres
    if not postgres.is_running:
        postgres.start()
    storage = open_storage(postgres.url)
    for study in storage.get_all_studies():
        storage.delete_study(study._study_id)


def study_on(server: Postgres, clock: Clock) -> StudyStore:
    """Return a new study whose storage waits by this clock."""
    storage: Any = open_storage(server.url)
    patient: Any = PatientStorage(storage._storage, clock, clock.pause)
    return StudyStore.create(patient, server.url, manifest())


def opened(store: StudyStore) -> Trial:
    return store.open_trial(work(), "cookie", LEASE, "")


def test_a_server_that_is_restarted_under_a_study_is_waited_for(server: Postgres) -> None:
    """Every kind of access, each with the server down when it begins."""
    clock = Clock(lambda: None if server.is_running else server.start())
    store = study_on(server, clock)
    server.stop()
    trial = opened(store)
    server.stop()
    closed = store.close(trial, MEASURED, RECORD)
    server.stop()
    store.set_attribute(BUDGET, 7)
    server.stop()
    store.refresh()
    again = StudyStore(open_storage(server.url), server.url, store.name)
    assert again.trials() == (closed,)
    assert again.get_attribute(BUDGET) == 7
    assert clock.now == 4 * 0.5


def test_a_server_that_stays_away_is_a_storage_error(server: Postgres) -> None:
    """After a minute and a half, with the words of the driver: the study can be resumed."""
    clock = Clock()
    store = study_on(server, clock)
    server.stop()
    with pytest.raises(StorageError, match="agent resume"):
        opened(store)
    assert clock.now == pytest.approx(PATIENCE_S, abs=1.0)


class AnswerLost:
    """A storage whose server dies after it did what it was asked, before it could say so."""

    def __init__(self, storage: Any, method: str, server: Postgres) -> None:
        self._storage, self._method, self._server, self._is_over = storage, method, server, False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        if name != self._method:
            return method

        def call(*args: Any, **options: Any) -> Any:
            answer = method(*args, **options)
            if self._is_over:
                return answer
            self._is_over = True
            self._server.stop()
            return self._storage.get_all_studies()  # meets a server that is gone

        return call


@pytest.mark.parametrize("method", ["create_new_trial", "set_trial_state_values", "set_trial_user_attr"])
def test_what_was_stored_although_the_answer_was_lost_is_not_stored_again(server: Postgres, method: str) -> None:
    """A trial of its own for each launch, told once."""
    clock = Clock(lambda: None if server.is_running else server.start())
    storage: Any = open_storage(server.url)
    plain = StudyStore.create(storage, server.url, manifest())
    losing: Any = PatientStorage(AnswerLost(storage._storage, method, server), clock, clock.pause)  # type: ignore[arg-type]
    store = StudyStore(losing, server.url, plain.name)
    closed = store.close(opened(store), MEASURED, RECORD)
    plain.refresh()
    assert plain.trials() == (closed,)
