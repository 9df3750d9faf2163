"""Whether a GPU's memory came back after a launch: killing a process only queues the driver's clean-up."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping

from runners.processes import read_stat

TOLERANCE_BYTES = 64 << 20
"""Drift of the used memory that belongs to the driver and to nobody in particular."""
POLL_S = 0.05


class GpuMemoryGuard:
    """Knows how much memory was used on the launch's GPUs before it began. Without NVML it knows nothing and says 0."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read the used memory of the GPUs that CUDA_VISIBLE_DEVICES names in the launch's environment."""
        self._visible = environment.get("CUDA_VISIBLE_DEVICES")
        self._before = self._used_bytes()
        self._pids_before = self._bytes_by_pid().keys()

    def wait_until_free(self, pids: Collection[int], timeout_s: float) -> int:
        """Wait until the launch's memory is free; return the bytes it still holds when the time is up."""
        deadline = time.monotonic() + timeout_s
        while (held := self._held_bytes(pids)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return held

    def _held_bytes(self, pids: Collection[int]) -> int:
        """Return what the launch still holds. Growth alone proves nothing where NVML shows who uses the memory."""
        growth = {index: used - self._before.get(index, used) for index, used in self._used_bytes().items()}
        if all(grown <= TOLERANCE_BYTES for grown in growth.values()):
            return 0
        by_pid = self._bytes_by_pid()
        if by_pid:
            return sum(used for pid, used in by_pid.items() if pid in pids or self._is_new_and_dying(pid))
        return sum(grown for grown in growth.values() if grown > TOLERANCE_BYTES)

    def _is_new_and_dying(self, pid: int) -> bool:
        """True for a process that came during the launch and holds memory without being there: the driver cleans up."""
        return pid not in self._pids_before and read_stat(pid) is None

    def _used_bytes(self) -> dict[int, int]:
        import pynvml

        try:
            pynvml.nvmlInit()
            return {
                index: int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(index)).used)
                for index in self._indices()
            }
        except pynvml.NVMLError:
            return {}

    def _bytes_by_pid(self) -> dict[int, int]:
        """Return the memory of every process that NVML shows on the GPUs; in a container it may show none."""
        import pynvml

        found: dict[int, int] = {}
        try:
            for index in self._indices():
                for process in pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(index)):
                    if process.pid != os.getpid():
                        found[process.pid] = found.get(process.pid, 0) + int(process.usedGpuMemory or 0)
        except pynvml.NVMLError:
            return {}
        return found

    def _indices(self) -> list[int]:
        """Return NVML's indices of the visible GPUs; all of them when they are named in a way not understood here."""
        import pynvml

        everything = range(pynvml.nvmlDeviceGetCount())
        if self._visible is None:
            return list(everything)
        uuids = {str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))): index for index in everything}
        names = [name.strip() for name in self._visible.split(",") if name.strip()]
        indices = [int(name) if name.isdigit() else uuids.get(name, -1) for name in names]
        return indices if all(index in everything for index in indices) else list(everything)
