"""What a new agent does with what the previous one left: its trials, its processes, its ownership."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.outcome import Outcome, OutcomeKind
from agent.recovery import close_orphans, give_up_ownership, own_lease, owner_of, take_ownership
from agent.store.study_store import OWNER, StudyStore
from agent.store.trial import Kind, Lease, Trial
from runners.cookies import COOKIE_VARIABLE, find_processes, process_identity
from tests.support.stores import sqlite_store, work

MEASURED = Outcome(kind=OutcomeKind.MEASURED, value=5.0)


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    """A new study."""
    return sqlite_store(tmp_path)


@contextmanager
def child(**variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that says when it is up and then lives until it is killed or its input ends."""
    code = "import sys; print(flush=True); sys.stdin.read()"
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        try:
            yield process
        finally:
            process.kill()


def lease_of(pid: int) -> Lease:
    """Return the lease of a process of this host."""
    return Lease.model_validate(process_identity(pid)._asdict())


def opened(store: StudyStore, cookie: str = "none", kind: Kind = Kind.SEARCH) -> Trial:
    """Open a trial as a previous agent did."""
    return store.open_trial(work(kind), cookie, own_lease(), "")


def stored_outcome(store: StudyStore, trial: Trial, outcome: Outcome) -> None:
    """Store the outcome of a trial without telling it, as a kill between the two leaves it."""
    trial_id = store._trial_ids[trial.study, trial.number]
    store._storage.set_trial_user_attr(trial_id, "outcome", outcome.model_dump(mode="json"))
    store.refresh()


def test_a_running_trial_whose_outcome_is_stored_is_told_and_not_run_again(store: StudyStore) -> None:
    """The evidence came first, so nothing is lost by a kill between the two."""
    stored_outcome(store, opened(store), MEASURED)
    assert close_orphans(store) == 1
    (trial,) = store.trials()
    assert trial.is_closed and trial.is_measured and trial.counts


def test_any_other_running_trial_is_interrupted_and_costs_nothing(store: StudyStore) -> None:
    """It blames nothing, and its work is queued again. Probes too."""
    opened(store)
    opened(store, kind=Kind.PROBE)
    assert close_orphans(store) == 2
    for trial in (*store.trials(), *store.probes()):
        assert trial.is_closed and not trial.counts and not trial.is_our_fault
        assert trial.outcome is not None and trial.outcome.kind is OutcomeKind.INTERRUPTED


def test_closed_trials_are_left_alone(store: StudyStore) -> None:
    """And recovering twice does nothing the second time."""
    closed = store.close(opened(store), MEASURED, None)
    opened(store)
    assert (close_orphans(store), close_orphans(store)) == (1, 0)
    assert store.trials()[0] == closed


def test_the_processes_of_an_orphan_are_killed_and_no_others(store: StudyStore) -> None:
    """They are found by the cookie in their environment, whoever their parent is by now."""
    mine, other = secrets.token_hex(16), secrets.token_hex(16)
    with child(**{COOKIE_VARIABLE: mine}) as orphan, child(**{COOKIE_VARIABLE: other}) as innocent:
        opened(store, cookie=mine)
        close_orphans(store)
        assert orphan.wait() < 0
        assert find_processes(mine) == []
        assert innocent.poll() is None


def test_a_study_is_taken_and_given_up(store: StudyStore) -> None:
    """Who runs it is told while it runs."""
    assert owner_of(store) is None
    lease = take_ownership(store)
    assert lease.pid == os.getpid()
    assert str(os.getpid()) in (owner_of(store) or "")
    assert take_ownership(store) == lease  # one's own study may be taken again
    give_up_ownership(store, lease)
    assert owner_of(store) is None


def test_a_study_whose_owner_lives_is_refused(store: StudyStore) -> None:
    """Two agents would launch the same work."""
    with child() as other:
        store.set_attribute(OWNER, lease_of(other.pid).model_dump(mode="json"))
        with pytest.raises(UsageError, match=str(other.pid)):
            take_ownership(store)
        assert str(other.pid) in (owner_of(store) or "")


def test_a_study_whose_owner_is_dead_is_taken(store: StudyStore) -> None:
    """A killed agent gives nothing up: its lease says enough."""
    with child() as other:
        lease = lease_of(other.pid)
    store.set_attribute(OWNER, lease.model_dump(mode="json"))
    assert owner_of(store) is None
    assert take_ownership(store).pid == os.getpid()


def test_a_process_that_got_the_owners_number_is_not_the_owner(store: StudyStore) -> None:
    """Numbers are reused: the start time tells."""
    with child() as other:
        impostor = lease_of(other.pid).model_copy(update={"started_ticks": 1})
        store.set_attribute(OWNER, impostor.model_dump(mode="json"))
        assert take_ownership(store).pid == os.getpid()


def test_a_lease_of_before_the_reboot_is_dead(store: StudyStore) -> None:
    """Nothing of another boot is alive."""
    old = own_lease().model_copy(update={"boot_id": "another", "started_ticks": 1})
    store.set_attribute(OWNER, old.model_dump(mode="json"))
    assert owner_of(store) is None
    take_ownership(store)


def test_an_owner_on_another_host_is_taken_over_only_when_asked(store: StudyStore) -> None:
    """What cannot be seen may be alive."""
    away = own_lease().model_copy(update={"host": "elsewhere"})
    store.set_attribute(OWNER, away.model_dump(mode="json"))
    with pytest.raises(UsageError, match="--take-over"):
        take_ownership(store)
    assert "elsewhere" in (owner_of(store) or "")
    assert take_ownership(store, take_over=True).pid == os.getpid()
