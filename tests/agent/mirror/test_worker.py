"""The search never waits for MLflow, is warned once, and can always repair."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent.mirror import MirrorError, MirrorWorker, MlflowMirror
from tests.agent.mirror.samples import dump, in_flight, snapshot, trial

STUDY = snapshot("s", (), status="running", ended_at=None)
LONG_S = 30.0


class FakeMirror:
    """Remembers what it was given; fails as often as it is told to."""

    def __init__(self, *, failures: int = 0, transient: bool = True) -> None:
        self.failures = failures
        self.transient = transient
        self.opened = 0
        self.seen: list[object] = []
        self.gate: threading.Event | None = None
        self.waits = threading.Event()

    def open_study(self, snapshot: Any) -> None:
        self.opened += 1

    def mirror_trial(self, trial: Any, dead_ends: Any = ()) -> None:
        self._write((trial.number, trial.is_closed, tuple(dead_ends)))

    def sync(self, snapshot: Any) -> None:
        self._write(snapshot)

    def _write(self, what: object) -> None:
        if self.gate:
            self.waits.set()
            self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise MirrorError("down", is_transient=self.transient)
        self.seen.append(what)


def _start(make: Callable[[], Any], **options: Any) -> tuple[MirrorWorker, list[str]]:
    warnings: list[str] = []
    return MirrorWorker(make, STUDY, warn=warnings.append, **options), warnings


def test_trials_arrive_in_order() -> None:
    fake = FakeMirror()
    worker, warnings = _start(lambda: fake)
    worker.trial_closed(trial(0))
    worker.trial_closed(trial(1), ["D1"])
    assert worker.close(LONG_S)
    assert fake.seen == [(0, True, ()), (1, True, ("D1",))]
    assert (fake.opened, warnings, worker.missing) == (1, [], None)


def test_a_trial_that_closed_before_its_start_was_written_is_written_once() -> None:
    fake = FakeMirror()
    fake.gate = threading.Event()
    worker, _ = _start(lambda: fake)
    worker.trial_started(in_flight(0))
    fake.waits.wait(LONG_S)
    worker.trial_started(in_flight(1))
    worker.trial_closed(trial(1))
    worker.trial_closed(trial(0))
    fake.gate.set()
    assert worker.close(LONG_S)
    assert fake.seen == [(0, False, ()), (1, True, ()), (0, True, ())]


def test_an_outage_costs_one_warning_and_nothing_is_lost() -> None:
    fake = FakeMirror(failures=3)
    worker, warnings = _start(lambda: fake, retry_s=0.0)
    worker.trial_closed(trial(0))
    while not worker.flush(LONG_S):
        pass
    assert fake.seen == [(0, True, ())]
    assert fake.opened == 4, "each try looks at MLflow anew"
    assert len(warnings) == 1
    assert "agent sync" in warnings[0]
    worker.close(LONG_S)


def test_a_flush_tries_once_more_and_then_says_what_is_missing() -> None:
    fake = FakeMirror(failures=1000)
    worker, warnings = _start(lambda: fake, retry_s=1000.0, repair_command="agent sync s")
    worker.trial_closed(trial(0))
    worker.trial_closed(trial(1))
    assert not worker.close(LONG_S)
    assert worker.missing == "2 trials not mirrored to MLflow. To repair: agent sync s"
    assert len(warnings) == 1


def test_memory_is_bounded_and_a_sync_makes_up_for_what_was_left_out() -> None:
    fake = FakeMirror()
    fake.gate = threading.Event()
    worker, _ = _start(lambda: fake, capacity=5)
    for number in range(100):
        worker.trial_closed(trial(number))
    assert len(worker._trials) == 5
    fake.gate.set()
    assert not worker.flush(LONG_S)
    assert "mirrored" in str(worker.missing)
    worker.sync(STUDY)
    assert worker.close(LONG_S)
    assert fake.seen[-1] is STUDY
    assert worker.missing is None


def test_a_trial_that_mlflow_refuses_does_not_block_the_others() -> None:
    fake = FakeMirror(failures=1, transient=False)
    worker, warnings = _start(lambda: fake)
    worker.trial_closed(trial(0))
    worker.trial_closed(trial(1))
    assert not worker.close(LONG_S)
    assert fake.seen == [(1, True, ())]
    assert len(warnings) == 1
    assert worker.missing == "1 trial not mirrored to MLflow. To repair: agent sync"


def test_a_bug_in_the_thread_does_not_hang_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bugs: list[object] = []
    monkeypatch.setattr(threading, "excepthook", bugs.append)

    def broken() -> Any:
        raise AssertionError("a bug")

    worker, _ = _start(broken)
    assert not worker.close(LONG_S)
    assert worker.missing is not None
    worker._thread.join(LONG_S)
    assert len(bugs) == 1


def test_a_server_that_is_down_costs_the_search_nothing() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        worker, warnings = _start(lambda: MlflowMirror(address), retry_s=1000.0)
        started = time.perf_counter()
        for number in range(200):
            worker.trial_closed(trial(number))
        assert (time.perf_counter() - started) / 200 < 0.01
        started = time.perf_counter()
        assert not worker.close(LONG_S)
        assert time.perf_counter() - started < 10.0
    assert len(warnings) == 1
    assert address in warnings[0]


def test_the_thread_drives_the_real_mirror(store: Any) -> None:
    opening = snapshot("threaded", (), status="running", ended_at=None)
    warnings: list[str] = []
    worker = MirrorWorker(store.mirror, opening, warn=warnings.append)
    trials = tuple(trial(number, study="threaded") for number in range(3))
    worker.trial_started(in_flight(0, study="threaded"))
    for item in trials:
        worker.trial_closed(item)
    assert worker.flush(LONG_S)
    worker.sync(snapshot("threaded", trials))
    assert worker.close(LONG_S)
    shown = dump(store.client, "threaded")
    assert [run["info"][0] for run in shown.values()] == ["FINISHED"] * 4
    assert warnings == []
