"""The loop over a Ray that fails: whatever one of its calls raises, nothing is lost, and the search goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.interruption import Interruption
from agent.store.study_store import StudyStore
from runners import RunRecord, TrialRequest
from runners.ray_pool import Lost, PoolError, Running
from tests.agent.test_heartbeat import campaign, small_study
from tests.support.pool_in_here import PoolInHere
from tests.support.synthetic_engine import SyntheticEngine


class FailingRay(PoolInHere):
    """A pool one of whose calls fails until Ray was replaced so often."""

    def __init__(self, call: str, failures: int) -> None:
        super().__init__(SyntheticEngine())
        self.call, self.failures, self.restarts = call, failures, 0

    def _may_fail(self, call: str) -> None:
        if call == self.call and self.restarts < self.failures:
            raise PoolError("Ray failed: Socket closed")

    def submit(self, requests: Sequence[TrialRequest]) -> Running:
        """Fail, or run."""
        self._may_fail("submit")
        return super().submit(requests)

    def wait(self, running: Sequence[Running], timeout_s: float) -> list[Running]:
        """Fail, or wait."""
        self._may_fail("wait")
        return super().wait(running, timeout_s)

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Fail, or answer."""
        self._may_fail("result")
        return super().result(task)

    def cancel(self, task: Running, timeout_s: float) -> None:
        """Fail, or cancel."""
        self._may_fail("cancel")

    def restart(self) -> None:
        """Be another one."""
        self.restarts += 1


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    """A study of four launches."""
    return small_study(tmp_path)


CALLS = pytest.mark.parametrize("call", ["submit", "wait", "result"])


@CALLS
def test_a_call_of_rays_that_fails_costs_a_new_ray_and_nothing_else(
    store: StudyStore, tmp_path: Path, call: str
) -> None:
    """The work that was about to start, or in flight, is queued again; no attempt of it is used up."""
    pool = FailingRay(call, failures=2)
    stop = campaign(store, pool, tmp_path / "home").run()
    assert (stop.resumable, pool.restarts) == (False, 2)
    lost = [trial for trial in store.trials() if not trial.counts]
    assert len(lost) == 2 and not any(trial.is_our_fault for trial in lost)
    assert {trial.outcome.note for trial in lost if trial.outcome} == {"Ray failed: Socket closed"}
    assert sum(trial.counts for trial in store.trials()) == 4


@CALLS
def test_a_ray_that_always_fails_ends_the_search_with_its_words(store: StudyStore, tmp_path: Path, call: str) -> None:
    """Exit code 4, everything closed: the study can be resumed."""
    stop = campaign(store, FailingRay(call, failures=100), tmp_path / "home").run()
    assert (stop.resumable, stop.node_unusable) == (True, True)
    assert stop.why == "Ray failed: Socket closed, 4 times in a row"
    assert all(trial.is_closed and not trial.counts for trial in store.trials())


def test_an_interrupted_search_closes_what_runs_although_ray_cannot_cancel_it(
    store: StudyStore, tmp_path: Path
) -> None:
    """A closed terminal ends Ray's processes and interrupts the agent in the same moment."""
    pool = FailingRay("cancel", failures=100)
    agent = campaign(store, pool, tmp_path / "home")

    def wait(running: Sequence[Running], timeout_s: float) -> list[Running]:
        agent.interruption.note(1)
        return []

    pool.wait = wait  # type: ignore[method-assign]
    assert isinstance(agent.interruption, Interruption)
    stop = agent.run()
    assert stop.resumable and not stop.node_unusable
    assert [trial.is_closed for trial in store.trials()] == [True]
