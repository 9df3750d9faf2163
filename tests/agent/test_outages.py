"""Disks that are full or read-only, databases that are locked: a search stops cleanly and goes on, losing nothing."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.campaign import Campaign
from agent.cli import ending
from agent.errors import StorageError
from agent.home import Home
from agent.interruption import Interruption
from agent.mirror import MirrorError, MlflowMirror, default_tracking_uri
from agent.propose.order import Stop
from agent.recovery import close_orphans, own_lease
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from runners import Exit, LogLine, Phase, RunRecord, TrialRequest
from tests.agent.mirror.samples import snapshot, trial
from tests.support.pool_in_here import PoolInHere
from tests.support.services import Postgres
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.stores import manifest
from tests.support.synthetic_engine import SyntheticEngine, measured

LAUNCHES = 6


class Mishap(SyntheticEngine):
    """An engine beside which something happens at its third launch."""

    def __init__(self, what: Callable[[], None]) -> None:
        self._what, self._runs = what, 0

    def run(self, request: TrialRequest) -> RunRecord:
        """Write a log as every launch does, or fail to."""
        self._runs += 1
        if self._runs == 3:
            self._what()
        folder = Path(request.artifact_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "engine.log").write_text("a line\n" * 1000, encoding="utf-8")
        request = request.model_copy(update={"assignment": {"draft_length": 1, **request.assignment}})
        return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=0.1, measurement=measured(request))


class Mute(Mishap):
    """The same, but its log cannot be written, and it dies without a word: no exception reaches the harness."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Fail as an unknown failure would."""
        try:
            return super().run(request)
        except OSError:
            lines = (LogLine(number=1, text="something"),)
            return RunRecord(exit=Exit(code=1), phase=Phase.LOAD_WEIGHTS, wall_s=0.1, excerpt=lines)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk:
        yield disk


def new_store(folder: Path) -> StudyStore:
    url = f"sqlite:///{folder / 'study.db'}"
    store = StudyStore.create(open_storage(url), url, manifest())
    store.set_attribute(BUDGET, LAUNCHES)
    return store


def search(store: StudyStore, engine: SyntheticEngine, home: Path) -> Stop:
    """Run the loop as an agent does, from what is stored."""
    close_orphans(store)
    return Campaign(
        store=store,
        runner=engine,
        pool=PoolInHere(engine),  # type: ignore[arg-type]
        home=Home(home),
        lease=own_lease(),
        environment={},
        observers=(),
        interruption=Interruption(),
    ).run()


def assert_whole(store: StudyStore) -> None:
    """Exactly the budget, everything closed, nothing measured twice, and nobody blamed for the outage."""
    counted = [trial for trial in store.trials() if trial.counts]
    assert len(counted) == LAUNCHES and all(trial.is_measured for trial in counted)
    assert all(trial.is_closed for trial in (*store.trials(), *store.probes()))
    assert max(Counter(trial.work.identity for trial in counted).values()) == 1
    assert not any(trial.is_our_fault for trial in store.trials())


@pytest.mark.parametrize("engine", [Mishap, Mute])
@pytest.mark.parametrize("mishap", ["fill", "make_read_only"])
def test_an_artifact_folder_that_cannot_be_written_stops_the_search_and_blames_nothing(
    disk: SmallDisk, tmp_path: Path, mishap: str, engine: type[Mishap]
) -> None:
    """Whether the runner raises, or the engine dies of it without a word: exit code 5, and on once it is mended."""
    store = new_store(tmp_path)
    stop = search(store, engine(getattr(disk, mishap)), disk.path / "home")
    assert (stop.resumable, stop.storage_failed) == (True, True)
    assert str(disk.path) in stop.why
    disk.make_read_only(False)
    disk.free()
    assert not search(store, Mishap(lambda: None), disk.path / "home").resumable
    assert_whole(store)


def test_a_disk_that_is_full_from_the_start_is_said_before_anything_is_launched(
    disk: SmallDisk, tmp_path: Path
) -> None:
    store = new_store(tmp_path)
    disk.fill()
    stop = search(store, Mishap(lambda: None), disk.path / "home")
    assert stop.storage_failed and "full" in stop.why
    assert store.trials() == store.probes() == ()


def test_a_full_disk_under_the_storage_ends_in_a_storage_error_and_loses_nothing(
    disk: SmallDisk, tmp_path: Path
) -> None:
    store = new_store(disk.path)
    with pytest.raises(StorageError, match="full"):
        search(store, Mishap(disk.fill), tmp_path / "home")
    disk.free()
    again = StudyStore(open_storage(store.url), store.url, store.name)
    assert not search(again, Mishap(lambda: None), tmp_path / "home").resumable
    assert_whole(again)
    with sqlite3.connect(disk.path / "study.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def test_a_database_that_another_process_locks_ends_in_a_storage_error_and_loses_nothing(tmp_path: Path) -> None:
    """The wait for the lock is a minute for each access; here it is none."""
    from optuna.storages import RDBStorage, get_storage

    url = new_store(tmp_path).url
    impatient = StudyStore(
        get_storage(RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 0}})), url, manifest().settings.name
    )
    other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    with pytest.raises(StorageError, match="locked"):
        search(impatient, Mishap(lambda: other.execute("BEGIN EXCLUSIVE") and None), tmp_path / "home")
    other.close()
    again = StudyStore(open_storage(url), url, manifest().settings.name)
    assert not search(again, Mishap(lambda: None), tmp_path / "home").resumable
    assert_whole(again)


def test_a_postgresql_that_is_restarted_under_a_search_costs_it_nothing(postgres: Postgres, tmp_path: Path) -> None:
    """Neither a trial nor the search itself."""

    def restart() -> None:
        postgres.stop()
        threading.Thread(target=postgres.start).start()

    storage = open_storage(postgres.url)
    try:
        store = StudyStore.create(storage, postgres.url, manifest())
        store.set_attribute(BUDGET, LAUNCHES)
        assert not search(store, Mishap(restart), tmp_path / "home").resumable
        assert_whole(StudyStore(open_storage(postgres.url), postgres.url, store.name))
    finally:
        for study in storage.get_all_studies():
            storage.delete_study(study._study_id)


def test_a_full_disk_under_mlflow_is_an_error_of_the_mirror_and_a_sync_makes_it_whole(disk: SmallDisk) -> None:
    """The search never sees it; what was written by half is found and replaced."""
    study = snapshot("full", tuple(trial(number, study="full") for number in range(4)))
    mirror = MlflowMirror(default_tracking_uri(disk.path))
    mirror.open_study(snapshot("full", (), status="running", ended_at=None))
    mirror.mirror_trial(study.trials[0])
    disk.fill()
    with pytest.raises(MirrorError):
        for each in study.trials[1:]:
            mirror.mirror_trial(each)
    disk.free()
    again = MlflowMirror(default_tracking_uri(disk.path))
    again.sync(study)
    assert again.sync(study).unchanged == 5


def test_the_exit_code_of_a_disk_is_5(tmp_path: Path) -> None:
    stop = Stop("no room", resumable=True, storage_failed=True)
    ended: Any = type("Ended", (), {"stop": stop})()
    console: Any = type("Console", (), {"print": lambda *_, **__: None})()
    assert ending._exit_code(ended, manifest(), Home(tmp_path), console) == StorageError.exit_code
