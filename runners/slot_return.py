"""Is a slot free again? Told by the record of its trial, or, where there is none, by a look of our own."""

from __future__ import annotations

from collections.abc import Sequence

from runners.contract import Leftovers, RunRecord, TrialRequest
from runners.cookies import kill_processes
from runners.gpu_memory import GpuMemoryGuard

KILL_TIMEOUT_S = 10.0
GPU_TIMEOUT_S = 20.0
"""How long the driver may take to free the memory of killed processes; a dead task's own wait did not happen."""


def problem_of_records(records: Sequence[RunRecord]) -> str | None:
    """Return what the trials of a slot left behind, in words, or None: then it may be used again."""
    unclean = next((record.leftovers for record in records if not record.leftovers.is_clean), None)
    return None if unclean is None else left_words(unclean)


def problem_after_loss(requests: Sequence[TrialRequest], guard: GpuMemoryGuard | None) -> str | None:
    """End what a task without an answer left on this machine; return what is still there, in words, or None.

    Args:
        requests: What the task ran.
        guard: Knows how much of the slot's GPU memory was used before it; None without GPUs: its processes have to
            be gone.
    """
    left = {key.pid for request in requests for key in kill_processes(request.cookie, bound_s=KILL_TIMEOUT_S)}
    held = guard.wait_until_free(left, GPU_TIMEOUT_S) if guard is not None else 0
    found = Leftovers(processes=tuple(sorted(left)), gpu_memory_bytes=held)
    return None if found.is_clean else left_words(found)


def left_words(left: Leftovers) -> str:
    """Return what was left behind, for a reader."""
    parts = [f"process {pid}" for pid in left.processes]
    parts += [f"shared memory {name}" for name in left.shared_memory]
    parts += [f"{left.gpu_memory_bytes / 2**30:.1f} GiB of GPU memory"] if left.gpu_memory_bytes else []
    parts += [f"port {port}" for port in left.ports] + list(left.folders)
    return ", ".join(parts)
