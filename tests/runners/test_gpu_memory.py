"""GPU memory after a launch: what it still holds is told from what others use."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from runners.gpu_memory import GpuMemoryGuard

GIB = 1 << 30
NOT_A_PROCESS = ANOTHER_TENANT = 4_194_999


class NvmlError(Exception):
    """What this NVML raises."""


class FakeNvml:
    """NVML of a node with two GPUs, whose memory the test sets."""

    NVMLError = NvmlError

    def __init__(self) -> None:
        self.used = [GIB, GIB]
        self.by_pid: dict[int, int] = {}
        self.has_driver = True

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name, as those below
        if not self.has_driver:
            raise NvmlError

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.used)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, gpu: int) -> str:  # noqa: N802
        return f"GPU-{gpu}"

    def nvmlDeviceGetMemoryInfo(self, gpu: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=self.used[gpu])

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: int) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.by_pid.items()] if gpu == 0 else []


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_memory_that_came_back_is_clean(nvml: FakeNvml) -> None:
    guard = GpuMemoryGuard({})
    nvml.used[0] += 1 << 20
    assert guard.wait_until_free([], 0.0) == 0


def test_memory_of_our_own_processes_is_left_over(nvml: FakeNvml) -> None:
    nvml.by_pid = {ANOTHER_TENANT: GIB}
    guard = GpuMemoryGuard({})
    nvml.used[0] += 3 * GIB
    nvml.by_pid = {1: 2 * GIB, ANOTHER_TENANT: 2 * GIB}
    assert guard.wait_until_free([1], 0.0) == 2 * GIB


def test_growth_of_another_tenant_is_not_ours(nvml: FakeNvml) -> None:
    guard = GpuMemoryGuard({})
    nvml.used[0] += 3 * GIB
    nvml.by_pid = {1: 3 * GIB}
    assert guard.wait_until_free([NOT_A_PROCESS], 0.0) == 0


def test_a_process_that_died_without_letting_go_is_ours(nvml: FakeNvml) -> None:
    """A crash is over before anybody could note the pids; the driver still lists them while it cleans up."""
    guard = GpuMemoryGuard({})
    nvml.used[0] += 3 * GIB
    nvml.by_pid = {1: GIB, NOT_A_PROCESS: 2 * GIB}
    assert guard.wait_until_free([], 0.0) == 2 * GIB


def test_growth_without_any_name_counts_as_ours(nvml: FakeNvml) -> None:
    guard = GpuMemoryGuard({})
    nvml.used[1] += 2 * GIB
    assert guard.wait_until_free([], 0.0) == 2 * GIB


@pytest.mark.parametrize(
    ("visible", "expected"), [("0", 0), ("GPU-0", 0), ("1,0", GIB), ("GPU-1", GIB), ("MIG-1", GIB)]
)
def test_only_the_visible_gpus_count(nvml: FakeNvml, visible: str, expected: int) -> None:
    guard = GpuMemoryGuard({"CUDA_VISIBLE_DEVICES": visible})
    nvml.used[1] += GIB
    assert guard.wait_until_free([], 0.0) == expected


def test_it_waits_for_the_driver(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = GpuMemoryGuard({})
    nvml.used[0] += 2 * GIB
    monkeypatch.setattr("time.sleep", lambda seconds: nvml.used.__setitem__(0, nvml.used[0] - GIB))
    assert guard.wait_until_free([], 20.0) == 0


def test_without_a_driver_nothing_is_known_and_nothing_left(nvml: FakeNvml) -> None:
    nvml.has_driver = False
    assert GpuMemoryGuard({}).wait_until_free([], 0.0) == 0
