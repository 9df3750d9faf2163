"""Join the ranks of one launch into a torch.distributed group, over loopback only."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, Store

COLLECTIVE_TIMEOUT_S = 60
"""After this time torch itself reports a collective that never ended."""


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Where the ranks meet: an anonymous file in memory that they inherit, so that nothing is left behind, however they
    end."""

    descriptor: int

    @classmethod
    def create(cls) -> Rendezvous:
        """A fresh meeting place; call before forking."""
        return cls(os.memfd_create("torch_engine_rendezvous"))

    def close(self) -> None:
        """Release the leader's hold."""
        os.close(self.descriptor)

    def store(self, num_ranks: int) -> Store:
        """The store of one rank. ``FileStore`` opens its path anew for every access, which /proc permits for a
        memfd."""
        return FileStore(f"/proc/self/fd/{self.descriptor}", num_ranks)


def rank_device(device: str, rank: int) -> torch.device:
    """The device of a rank, made current; on CPUs one thread, since ranks share the cores."""
    if device == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.set_device(rank)
        return torch.device("cuda", rank)
    torch.set_num_threads(1)
    return torch.device("cpu")


def join(rendezvous: Rendezvous, device: torch.device, rank: int, num_ranks: int) -> dist.ProcessGroup:
    """The default group: NCCL for CUDA tensors, gloo for CPU tensors. Raises whatever torch raises."""
    # Ranks share one host: sockets stay on the loopback interface unless the user's environment says otherwise.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=rendezvous.store(num_ranks),
        rank=rank,
        world_size=num_ranks,
        timeout=timedelta(seconds=COLLECTIVE_TIMEOUT_S),
        # Connects NCCL now: its errors then belong to this phase, not to the first collective.
        device_id=device if device.type == "cuda" else None,
    )
    group = dist.group.WORLD
    if group is None:
        raise RuntimeError("torch.distributed has no default group after init_process_group")
    return group


def extra_group(backend: str) -> dist.ProcessGroup:
    """A second group of all ranks on another backend. Raises whatever torch raises."""
    group = dist.new_group(backend=backend, timeout=timedelta(seconds=COLLECTIVE_TIMEOUT_S))
    if not isinstance(group, dist.ProcessGroup):
        raise RuntimeError(f"torch.distributed made no {backend} group of all ranks")
    return group


def dtype_of(device: torch.device) -> torch.dtype:
    """Element type of weights, activations and messages: bfloat16 on CUDA, float32 on CPUs."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def yield_gloo_event_loops() -> int:
    """Make gloo's event loops give way to the threads that compute; returns how many there are.

    The loop of gloo's TCP transport (as in torch 2.13) retries in a tight ``epoll_wait`` while another thread holds a
    connection's lock. Where cores are scarce it thus keeps the very thread off its core that would release the lock,
    until the next scheduler tick: 4 ms instead of 0.2 ms for a small all-reduce on two cores.
    """
    loops = [
        task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text().strip() == "gloo_tcp_loop"
    ]
    # Not allowed (or not Linux's scheduler): slower, but right.
    with suppress(OSError):
        for task in loops:
            os.sched_setscheduler(int(task.name), os.SCHED_BATCH, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, int(task.name), 10)
    return len(loops)
