"""A real vLLM that dies, hangs or cannot start: each end is classified, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Deadlines, Phase, RunRecord, TrialRequest
from runners.ports import free_port
from runners.vllm_runner import VllmRunner
from tests.engines.conftest import InstalledEngine
from tests.engines.launches import (
    ENDLESS,
    LOOPBACK,
    engine_request,
    is_serving,
    left_behind,
    listening_addresses,
    process_of,
    shared_memory_names,
)
from tests.support.waiting import wait_until

START_S = 200.0


@dataclass(frozen=True)
class Ended:
    """A launch that is over."""

    record: RunRecord
    failure: Failure | None


def run(request: TrialRequest, runner: VllmRunner | None = None) -> Ended:
    """Run a launch to its end and check that nothing of it is left."""
    before = shared_memory_names()
    record = (runner or VllmRunner()).run(request)
    assert left_behind(request.cookie, record, before) == []
    return Ended(record, classify(record).failure)


def run_and_act(request: TrialRequest, act: Callable[[], None], runner: VllmRunner | None = None) -> Ended:
    """Run a launch and do something once it serves."""
    errors: list[str] = []

    def wait_and_act() -> None:
        try:
            wait_until(lambda: is_serving(request), START_S)
            act()
        except AssertionError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    ended = run(request, runner)
    thread.join()
    assert errors == []
    return ended


def run_and_strike(request: TrialRequest, role: str, number: int) -> Ended:
    """Run a launch and send a signal to one of its processes once it serves."""
    return run_and_act(request, lambda: os.kill(wait_until(lambda: process_of(request.cookie, role)), number))


@dataclass(frozen=True)
class Served:
    """A launch that was served at its second port, since the first one was taken; what several tests look at."""

    ended: Ended
    addresses: set[str]
    """Where its processes listened while it served."""
    folder: Path


@pytest.fixture(scope="module")
def served(vllm: InstalledEngine, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """One healthy server."""
    folder, addresses = tmp_path_factory.mktemp("served"), set[str]()
    request = engine_request(vllm.python, vllm.models / "target", folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((int(taken.getsockname()[1]), free_port()))
        runner = VllmRunner(lambda distances, within: next(ports))
        ended = run_and_act(request, lambda: addresses.update(listening_addresses(request.cookie)), runner)
    return Served(ended, addresses, folder)


def test_a_healthy_server_is_measured(served: Served) -> None:
    ended = served.ended
    assert ended.failure is None
    assert ended.record.measurement is not None
    assert [level.concurrency for level in ended.record.measurement.levels] == [1, 4]
    assert all(len(row) == 32 for row in ended.record.measurement.outputs)
    assert {Phase.INIT_DISTRIBUTED, Phase.LOAD_WEIGHTS, Phase.ALLOC_KV, Phase.READY} <= ended.record.phase_s.keys()
    assert ended.record.exit.requested


def test_nothing_of_a_launch_listens_to_the_network(served: Served) -> None:
    assert served.addresses == {LOOPBACK}


def test_a_port_that_is_taken_is_tried_again_elsewhere(served: Served) -> None:
    assert "Address already in use" in (served.folder / "engine.attempt-1.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("role", ["leader", "engine core", "worker"])
def test_a_killed_process_is_the_engine_s_death(role: str, vllm: InstalledEngine, tmp_path: Path) -> None:
    """Left alone, a killed leader leaves the others alive for ever, and a killed worker makes it exit with 0."""
    request = engine_request(vllm.python, vllm.models / "target", tmp_path, workload=ENDLESS)
    ended = run_and_strike(request, role, signal.SIGKILL)
    assert (ended.record.phase, ended.record.measurement) == (Phase.SERVE, None)
    assert ended.failure is not None
    assert ended.failure.reason is Reason.PROCESS_KILLED
    assert not (ended.record.exit.requested and ended.record.exit.cause == "served")


def test_a_stopped_worker_is_a_hang_with_its_stacks(vllm: InstalledEngine, tmp_path: Path) -> None:
    """Its health page still answers 200."""
    deadlines = Deadlines(phase_default_s=120.0, no_progress_s=12.0, stop_s=2.0)
    request = engine_request(vllm.python, vllm.models / "target", tmp_path, workload=ENDLESS, deadlines=deadlines)
    ended = run_and_strike(request, "worker", signal.SIGSTOP)
    assert ended.record.exit.cause == "no_progress"
    assert ended.failure is not None
    assert (ended.failure.reason, ended.failure.rule) == (Reason.SERVER_HANG, "F003")
    stacks = Path(ended.record.stacks_path or "").read_text(encoding="utf-8")
    assert "T (stopped)" in stacks
    assert "vllm" in stacks and "File " in stacks, "the Python stacks of the processes that could still write them"


def test_what_cannot_start_is_classified_by_its_root(vllm: InstalledEngine, tmp_path: Path) -> None:
    """A wrong draft and ranks that do not share the heads are launches of the study."""
    ended = run(engine_request(vllm.python, vllm.models / "corrupt", tmp_path))
    assert ended.failure is not None
    assert ended.failure.reason is Reason.MODEL_LOAD
    assert ended.record.phase in (Phase.SPAWN, Phase.INIT_DISTRIBUTED, Phase.LOAD_WEIGHTS)
