"""The store's contract, bound to a SQLite file and to a PostgreSQL server that the tests start."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agent.errors import AgentError, StorageError, UsageError
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, PROBES, StudyStore, study_names
from agent.store.trial import Kind, Trial, Work
from runners import Exit, Measurement, Phase, RunRecord, StoppedEarly
from tests.support.planted import Planted
from tests.support.simulated_study import LEASE
from tests.support.stores import manifest, sqlite_store, work

MEASURED = Outcome(kind=OutcomeKind.MEASURED, value=123.5)
FAILED = Outcome(kind=OutcomeKind.FAILED, failure=Planted((), Reason.GPU_OOM).failure)
SLOWER = Outcome(kind=OutcomeKind.SLOWER)
INTERRUPTED = Outcome(kind=OutcomeKind.INTERRUPTED, note="killed")
RECORD = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=2.5)


@pytest.fixture
def store(url: str) -> StudyStore:
    """A new study."""
    return StudyStore.create(open_storage(url), url, manifest())


def reopened(store: StudyStore) -> StudyStore:
    """Return the same study as another process would open it."""
    return StudyStore(open_storage(store.url), store.url, store.name)


def opened(store: StudyStore, piece: Work | None = None) -> Trial:
    """Open a trial."""
    return store.open_trial(piece or work(), "cookie", LEASE, "/artifacts/0")


def test_what_was_created_is_read_back_equal(store: StudyStore) -> None:
    """The manifest survives: settings, space and facts."""
    again = reopened(store)
    assert again.manifest == manifest()
    assert again.manifest.space.fingerprint == manifest().space.fingerprint
    assert study_names(open_storage(store.url)) == ["study"]


@pytest.mark.parametrize("half", [("study",), ("study", "study" + PROBES)])
def test_a_creation_that_was_killed_half_way_is_no_study_and_is_completed_by_the_next(
    url: str, half: tuple[str, ...]
) -> None:
    """The manifest is written last: before it there is no study, and creating again is no error."""
    from optuna.study import StudyDirection

    storage = open_storage(url)
    for name in half:
        storage.create_new_study([StudyDirection.MAXIMIZE], name)
    assert study_names(storage) == []
    StudyStore.create(storage, url, manifest())
    assert study_names(open_storage(url)) == ["study"]


def test_a_trial_is_stored_running_with_lease_and_cookie_before_anything_is_started(store: StudyStore) -> None:
    """A kill right after the creation leaves enough to find the processes and the owner."""
    opened(store)
    (found,) = reopened(store).trials()
    assert (found.cookie, found.lease, found.artifact_dir) == ("cookie", LEASE, "/artifacts/0")
    assert not found.is_closed and found.outcome is None
    stored = open_storage(store.url).get_all_trials(store._ids["study"])[0]
    assert stored.state.name == "RUNNING" and stored.params == work().requested


@pytest.mark.parametrize(
    ("outcome", "state", "values"),
    [
        (MEASURED, "COMPLETE", [123.5]),
        (FAILED, "PRUNED", None),
        (SLOWER, "PRUNED", None),
        (INTERRUPTED, "FAIL", None),
    ],
)
def test_outcomes_map_to_the_states_of_the_design(
    store: StudyStore, outcome: Outcome, state: str, values: list[float] | None
) -> None:
    """COMPLETE is measured, PRUNED blames something, FAIL blames nothing."""
    store.close(opened(store), outcome, RECORD)
    stored = open_storage(store.url).get_all_trials(store._ids["study"])[0]
    assert (stored.state.name, stored.values) == (state, values)


def test_what_was_stopped_early_keeps_its_partial_value_beside_the_state(store: StudyStore) -> None:
    """As Optuna has it: pruned, without a value, and with the intermediate value that its requests point to."""
    stopped = StoppedEarly(concurrency=8, requests=11, below=90.0, ceiling=80.0, estimate=75.0, saved_s=12.0)
    record = RECORD.model_copy(update={"measurement": Measurement(levels=(), stopped=stopped)})
    closed = store.close(opened(store), SLOWER.model_copy(update={"value": 75.0}), record)
    stored = open_storage(store.url).get_all_trials(store._ids["study"])[0]
    assert (stored.state.name, stored.values, stored.intermediate_values) == ("PRUNED", None, {11: 75.0})
    assert reopened(store).trials() == (closed,)
    assert closed.counts and closed.works and not closed.is_measured and not closed.is_failed


def test_the_outcome_is_stored_before_the_state(store: StudyStore) -> None:
    """A kill between the two leaves a running trial that carries its outcome, to be told and not run again."""
    trial = opened(store)

    class Cut(StudyStore):
        def _set_state(self, trial_id: int, outcome: Outcome) -> None:
            raise KeyboardInterrupt

    cut = Cut(open_storage(store.url), store.url, store.name)
    with pytest.raises(KeyboardInterrupt):
        cut.close(trial, MEASURED, RECORD)
    (found,) = reopened(store).trials()
    assert not found.is_closed and found.record == RECORD
    assert found.outcome is not None and found.outcome.model_copy(update={"closed_at": None}) == MEASURED


def test_a_closed_trial_never_changes(store: StudyStore) -> None:
    """Finished trials are immutable: closing again is refused and changes nothing."""
    other = reopened(store)
    trial = opened(store)
    other.refresh()
    closed = store.close(trial, MEASURED, RECORD)
    with pytest.raises(StorageError):
        other.close(trial, FAILED, None)
    assert reopened(store).trials() == (closed,)


def test_another_instance_sees_the_same_after_a_refresh(store: StudyStore) -> None:
    """Readers and the owner agree, also about what was running when they first looked."""
    other = reopened(store)
    first, probe = opened(store), opened(store, work(Kind.PROBE))
    other.refresh()
    assert (other.trials(), other.probes()) == (store.trials(), store.probes()) != ((), ())
    store.close(first, FAILED, RECORD)
    store.close(probe, MEASURED, None)
    opened(store, work(draft=0))
    other.refresh()
    assert (other.trials(), other.probes()) == (store.trials(), store.probes())


def test_numbers_are_those_of_the_storage_whoever_stores_in_between(store: StudyStore) -> None:
    """A trial of the same study, of its probes or of another study: what this agent believes is what is stored."""
    other, third = reopened(store), StudyStore.create(open_storage(store.url), store.url, manifest("third"))
    mine = [opened(store), opened(store), opened(store, work(Kind.PROBE)), opened(store)]
    opened(third)
    mine.append(opened(store))
    opened(other)
    mine += [opened(store), opened(store)]
    again = reopened(store)
    stored = {(trial.study, trial.number): trial.cookie for trial in (*again.trials(), *again.probes())}
    assert [trial.number for trial in mine] == [0, 1, 0, 2, 3, 5, 6]
    assert len(stored) == len(mine) + 1 and all((trial.study, trial.number) in stored for trial in mine)


def test_another_process_sees_the_same(store: StudyStore) -> None:
    """Nothing lives in this process only."""
    store.close(opened(store), MEASURED, RECORD)
    code = (
        "import sys; from agent.store.opening import open_storage; from agent.store.study_store import StudyStore\n"
        "store = StudyStore(open_storage(sys.argv[1]), sys.argv[1], 'study')\n"
        "print(store.trials()[0].model_dump_json())"
    )
    done = subprocess.run([sys.executable, "-c", code, store.url], capture_output=True, text=True, check=True)
    assert Trial.model_validate_json(done.stdout) == store.trials()[0]


def test_probes_go_to_the_companion_and_leave_the_study_alone(store: StudyStore) -> None:
    """Probes have numbers of their own and no place among the launches."""
    launch, probe = opened(store), opened(store, work(Kind.PROBE))
    assert (launch.study, launch.number, probe.study, probe.number) == ("study", 0, "study" + PROBES, 0)
    store.close(probe, MEASURED, None)
    assert [trial.is_closed for trial in (*store.trials(), *store.probes())] == [False, True]
    assert study_names(open_storage(store.url)) == ["study"]


def test_a_work_is_read_back_with_its_identity(store: StudyStore) -> None:
    """Types survive the database: True does not become 1, and 1 does not become 1.0."""
    piece = work(expert=True, draft=1).again(Kind.REPEAT, 3, "contender")
    opened(store, piece)
    (found,) = reopened(store).trials()
    assert found.work == piece and found.work.identity == piece.identity == f"{piece.key}/repeat/3"


def test_another_launch_of_the_same_assignment_is_another_identity() -> None:
    """Also when the first one's identity was looked at before (it is kept)."""
    first = work()
    assert first.identity.endswith("/first/0")
    assert first.again(Kind.CONFIRM, 0, "again?").identity == f"{first.key}/confirm/0"
    assert first.again(Kind.REPEAT, 2, "repeat").identity == f"{first.key}/repeat/2"


def test_attributes_are_mutable_and_shared(store: StudyStore) -> None:
    """The budget may grow while the study runs."""
    assert store.get_attribute(BUDGET) is None
    store.set_attribute(BUDGET, 40)
    store.set_attribute(BUDGET, 41)
    assert reopened(store).get_attribute(BUDGET) == 41


def test_two_studies_in_one_storage_do_not_see_each_other(store: StudyStore) -> None:
    """Names separate them; the list is oldest first."""
    second = StudyStore.create(open_storage(store.url), store.url, manifest("another"))
    opened(store)
    assert second.trials() == () and reopened(second).trials() == ()
    assert study_names(open_storage(store.url)) == ["study", "another"]


def test_a_manifest_of_another_version_is_an_error_with_words(store: StudyStore) -> None:
    """A newer agent's study is not half understood."""
    store.set_attribute("manifest", '{"schema_version": 99, "new": 1}')
    with pytest.raises(StorageError, match="another version"):
        reopened(store)


@pytest.mark.parametrize(
    "wrong",
    [
        "nonsense",
        "",
        "foo://me:hunter2@host/x",
        "postgresql://me:hunter2@localhost:notaport/x",
        "postgresql://me:hun:t@er2@localhost:notaport/x",
        "foo://host/x?password=hunter2",
        "sqlite:////nonexistent/folder/study.db",
    ],
)
def test_a_storage_that_cannot_be_opened_is_named_without_its_password(wrong: str) -> None:
    """Malformed, unknown or missing: a usage or storage error that shows the address and no secret."""
    with pytest.raises(AgentError) as caught:
        open_storage(wrong)
    assert isinstance(caught.value, UsageError | StorageError)
    assert wrong.split(":")[0] in str(caught.value)
    assert "hunter2" not in str(caught.value) and "er2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_database_is_a_storage_error(tmp_path: Path) -> None:
    """Nothing of it is overwritten."""
    path = tmp_path / "study.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError):
        open_storage(f"sqlite:///{path}")
    assert path.read_bytes() == b"not a database" * 100


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    """MLflow's file, for example, looks like one of Optuna's and is none."""
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as database:
        database.execute("create table alembic_version (version_num varchar)")
        database.execute("insert into alembic_version values ('0123abc')")
    with pytest.raises(UsageError, match="another"):
        open_storage(f"sqlite:///{path}")


def test_a_database_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    """Every read and write of a trial names the storage and what to do, instead of a traceback."""
    from optuna.storages import RDBStorage, get_storage

    url = sqlite_store(tmp_path).url
    impatient = get_storage(RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 0}}))
    store = StudyStore(impatient, url, "study")
    trial = opened(store)
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.execute("begin exclusive")
        for access in (
            lambda: opened(store, work(draft=0)),
            lambda: store.close(trial, MEASURED, RECORD),
            lambda: store.set_attribute(BUDGET, 3),
            lambda: store.get_attribute(BUDGET),
            store.refresh,
            lambda: study_names(impatient),
        ):
            with pytest.raises(StorageError, match="locked"):
                access()
    assert store.close(trial, MEASURED, RECORD).is_closed


def test_a_database_that_vanishes_is_a_storage_error(tmp_path: Path) -> None:
    """Reading is guarded like writing."""
    store = sqlite_store(tmp_path)
    (tmp_path / "study.db").write_bytes(b"")
    with pytest.raises(StorageError):
        store.refresh()
    with pytest.raises(StorageError):
        study_names(store._storage)
