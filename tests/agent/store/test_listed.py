"""The trials of a store are listed once for as long as none of them changes: a long study has thousands."""

from __future__ import annotations

from pathlib import Path

from agent.outcome import Outcome, OutcomeKind
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore
from tests.support.simulated_study import LEASE
from tests.support.stores import manifest, work


def test_a_list_is_the_same_object_until_a_trial_of_it_changes(tmp_path: Path) -> None:
    """What is opened or closed makes a new one, and leaves that of the probes as it is."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    store = StudyStore.create(open_storage(url), url, manifest())
    none, probes = store.trials(), store.probes()
    opened = store.open_trial(work(), "cookie", LEASE, "")
    running = store.trials()
    store.close(opened, Outcome(kind=OutcomeKind.MEASURED, value=2.0), None)
    closed = store.trials()
    assert (none, len(running), running[0].is_closed) == ((), 1, False)
    assert closed[0].is_closed and store.trials() is closed and store.probes() is probes
