"""Trials that share a machine: who waits, who gets which slot, and when a slot is given to nobody any more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from runners import EngineSettings, Exit, Leftovers, Phase, Rung, RunRecord, TrialRequest, Workload, slot_pool
from runners.cookies import COOKIE_VARIABLE, find_processes
from runners.node_layout import core_layout, gpu_layout
from runners.ray_pool import Lost, PoolError, RayPool, Running
from runners.slot_pool import NO_SLOT, SlotPool
from runners.slot_queue import SlotQueue
from runners.slots import NodeSlots

CORES = {"numa_cpus": {"0": "0-7"}}


class Tasks:
    """What Ray would run: each task lasts until the test ends it."""

    def __init__(self) -> None:
        self.handed_out: list[Running] = []
        self.ended: dict[int, list[RunRecord] | Lost] = {}
        self.restarts = 0

    def submit(self, requests: Sequence[TrialRequest]) -> Running:
        """Take a batch in."""
        self.handed_out.append(Running(len(self.handed_out), tuple(requests)))
        return self.handed_out[-1]

    def wait(self, running: Sequence[Running]) -> list[Running]:
        """Return what the test has ended."""
        return [task for task in running if task.reference in self.ended]

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Return what the test says."""
        return self.ended[task.reference]

    def end(self, number: int, result: list[RunRecord] | Lost | None = None) -> None:
        """End a task."""
        self.ended[number] = [record()] if result is None else result

    def slots(self) -> list[tuple[int, ...]]:
        """Return the places of everything handed out so far, in order."""
        return [task.requests[0].slot.places for task in self.handed_out if task.requests[0].slot is not None]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tasks]:
    """Tasks in the place of Ray's."""
    found = Tasks()
    monkeypatch.setattr(RayPool, "submit", lambda pool, requests, *_: found.submit(requests))
    monkeypatch.setattr(RayPool, "wait", lambda pool, running, timeout_s: found.wait(running))
    monkeypatch.setattr(RayPool, "result", lambda pool, task: found.result(task))
    monkeypatch.setattr(RayPool, "cancel", lambda *_: None)
    monkeypatch.setattr(RayPool, "restart", lambda _: None)
    yield found


def record(**left: object) -> RunRecord:
    """Return the record of a launch that left this behind."""
    return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, leftovers=Leftovers.model_validate(left))


def request_of(cookie: str, ranks: int = 2, rung: Rung = Rung.FULL) -> TrialRequest:
    """Return a request; `ranks` stands in a parameter, as where a space tunes it."""
    return TrialRequest(
        study="slots",
        trial=0,
        rung=rung,
        settings=EngineSettings(engine="none", num_ranks=2, device="cpu"),
        assignment={"tp": ranks},
        workload=Workload(),
        cookie=cookie,
        environment={"CUDA_VISIBLE_DEVICES": "0,1,2,3"},
        artifact_dir="/nowhere",
    )


def pool_of_cores(number: int = 2) -> SlotPool:
    """Return a pool over eight cores in so many slots."""
    return SlotPool(SlotQueue(NodeSlots(core_layout(CORES, number), is_shared=True), number), (2,))


def pool_of_gpus(widths: tuple[int, ...] = (1, 4)) -> SlotPool:
    """Return a pool over four GPUs."""
    layout = gpu_layout({"gpu_count": 4, **CORES})
    return SlotPool(SlotQueue(NodeSlots(layout, is_shared=True), 4), widths)


def test_each_trial_has_a_slot_of_its_own_and_the_next_one_waits_for_the_first_that_is_free(tasks: Tasks) -> None:
    """The request says which, and its record goes to whom it belongs."""
    pool = pool_of_cores()
    running = [pool.submit([request_of(f"{number}")]) for number in range(3)]
    assert tasks.slots() == [(0,), (1,)]
    assert tasks.handed_out[0].requests[0].slot and tasks.handed_out[0].requests[0].slot.cores == (0, 1, 2, 3)
    tasks.end(1)
    assert pool.wait(running, 0.0) == [running[1]]
    assert pool.result(running[1]) == [record()]
    assert tasks.slots() == [(0,), (1,), (1,)]


def test_one_more_is_asked_for_only_when_it_can_start(tasks: Tasks) -> None:
    """What is proposed later is proposed with more results."""
    pool = pool_of_cores()
    assert pool.has_room(0, 2)
    running = [pool.submit([request_of("0")])]
    assert pool.has_room(1, 2) and not pool.has_room(1, 1)
    running.append(pool.submit([request_of("1")]))
    assert not pool.has_room(2, 2) and not pool.has_room(2, 9)
    tasks.end(0)
    pool.result(running[0])
    assert pool.has_room(1, 2)


def test_of_several_widths_a_few_may_wait(tasks: Tasks) -> None:
    """While a wide one waits for room, narrow ones are asked for; what runs is what the queue chooses."""
    pool = pool_of_gpus()
    running = [pool.submit([request_of(f"{number}", ranks)]) for number, ranks in enumerate((1, 4))]
    assert tasks.slots() == [(0,)] and pool.has_room(2, 4)
    running.append(pool.submit([request_of("2", 1)]))
    assert tasks.slots() == [(0,), (1,)]
    assert tasks.handed_out[1].requests[0].environment["CUDA_VISIBLE_DEVICES"] == "1"
    for number in (0, 1):
        tasks.end(number)
    for each in pool.wait(running, 0.0):
        pool.result(each)
    assert tasks.slots()[-1] == (0, 1, 2, 3)


def test_a_slot_that_is_not_clean_is_given_to_nobody_and_the_others_go_on(tasks: Tasks) -> None:
    """As long as every trial of the study still finds one."""
    pool = pool_of_cores()
    running = [pool.submit([request_of(f"{number}")]) for number in range(2)]
    tasks.end(0, [record(gpu_memory_bytes=1 << 30)])
    pool.result(running[0])
    assert pool.goes_on_without_a_slot() and not pool.has_room(1, 2)
    tasks.end(1)
    pool.result(running[1])
    assert pool.has_room(0, 2)
    pool.submit([request_of("2")])
    assert tasks.slots() == [(0,), (1,), (1,)]
    tasks.end(2, [record(processes=(4711,))])
    pool.result(Running(pool._tickets[0], ()))
    assert not pool.goes_on_without_a_slot()


def test_what_no_slot_is_left_for_ends_with_that(tasks: Tasks) -> None:
    """A trial of all four GPUs waited when one of them was lost."""
    pool = pool_of_gpus()
    running = [pool.submit([request_of(f"{number}", ranks)]) for number, ranks in enumerate((1, 4))]
    tasks.end(0, [record(gpu_memory_bytes=1 << 30)])
    assert pool.wait(running, 0.0) == [running[0]]
    pool.result(running[0])
    assert not pool.goes_on_without_a_slot()
    assert pool.wait(running[1:], 0.0) == [running[1]]
    assert pool.result(running[1]) == Lost(NO_SLOT)


@pytest.mark.parametrize("end", ["lost", "cancelled", "restarted"])
def test_a_slot_without_an_answer_is_looked_at(tasks: Tasks, end: str, tmp_path: Path) -> None:
    """Its trial's processes are ended before anybody else gets it."""
    cookie = f"slot-{tmp_path.name}-{end}"
    pool = pool_of_cores(1)
    running = pool.submit([request_of(cookie)])
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeper, env={COOKIE_VARIABLE: cookie}) as process:
        if end == "lost":
            tasks.end(0, Lost("the worker died"))
            assert pool.result(running) == Lost("the worker died")
        elif end == "cancelled":
            pool.cancel(running, 0.0)
        else:
            pool.restart()
        assert process.wait(10) == -9
    assert find_processes(cookie) == [] and pool.has_room(0, 1)


def test_a_cancelled_trial_that_never_started_takes_nothing(tasks: Tasks) -> None:
    """It leaves the queue."""
    pool = pool_of_cores(1)
    first, second = (pool.submit([request_of(f"{number}")]) for number in range(2))
    pool.cancel(second, 0.0)
    tasks.end(0)
    pool.result(first)
    assert len(tasks.handed_out) == 1 and pool.has_room(0, 1)


def test_gpus_whose_memory_does_not_come_back_are_given_to_nobody(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task died without an answer; how much was used before is known from before it began."""
    began: list[str] = []

    class Guard:
        """NVML of GPUs that keep two GiB."""

        def __init__(self, environment: dict[str, str]) -> None:
            began.append(environment["CUDA_VISIBLE_DEVICES"])

        def wait_until_free(self, pids: object, timeout_s: float) -> int:
            """Wait in vain."""
            return 2 << 30

    monkeypatch.setattr(slot_pool, "GpuMemoryGuard", Guard)
    pool = pool_of_gpus((1, 2))
    running = pool.submit([request_of("a-cookie-that-nobody-has", 2)])
    tasks.end(0, Lost("the worker died"))
    pool.result(running)
    assert began == ["0,1"] and pool.goes_on_without_a_slot()
    for number in range(2):
        pool.submit([request_of(f"{number}", 1)])
    assert tasks.slots() == [(0, 1), (2,), (3,)]
    assert set(pool._queue.slots.lost.values()) == {"2.0 GiB of GPU memory"}


@pytest.mark.parametrize("end", ["cancel", "restart"])
def test_what_ray_does_not_take_keeps_no_slot(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Its trial is closed by whoever handed it in, and the slot is there for the next one."""
    pool = pool_of_cores(1)
    first, second = (pool.submit([request_of(f"{number}")]) for number in range(2))
    tasks.end(0)
    with monkeypatch.context() as patch:
        patch.setattr(RayPool, "submit", refusing)
        assert pool.result(first) == [record()]
        with pytest.raises(PoolError, match="Ray failed"):
            pool.wait([second], 0.0)
    if end == "cancel":
        pool.cancel(second, 0.0)
    else:
        pool.restart()
    assert pool.has_room(0, 1)
    pool.submit([request_of("2")])
    assert tasks.slots() == [(0,), (0,)]


def refusing(*_: object) -> Running:
    """Take nothing."""
    raise PoolError("Ray failed to take a trial: Socket closed")
