"""How ranks talk: five ways to all-reduce, and the all-to-all and all-gather of expert parallelism.

Nothing here falls back: a backend that this machine lacks raises torch's own error when it is built or first used.
Every collective counts its calls by name, which proves afterwards what a decoding step really ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist

from .config import EngineConfig
from .process_group import dtype_of, extra_group

# torch 2.13 renames these two and warns at each call of the old name.
_all_gather: Callable[..., Any] = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter: Callable[..., Any] = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

AllReduce = Callable[[torch.Tensor], torch.Tensor]
"""Takes this rank's contiguous summand and returns the sum over ranks, of the same shape; the argument may be
overwritten."""


class GroupAllReduce:
    """``dist.all_reduce`` in place, on the group's own backend (NCCL or gloo)."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group

    def __call__(self, summand: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(summand, group=self.group)
        return summand


class SymmetricMemoryAllReduce:
    """torch's own kernels over memory that every GPU maps (``torch.distributed._symmetric_memory``, torch 2.9 to 2.13).

    One-shot: every rank reads all summands and adds them: fewest steps, most traffic. Two-shot: each rank adds one part
    and the parts are gathered. Both copy into the symmetric buffer first; the kernels synchronise with the peers at
    start and end, so the buffer may be refilled by the next call in stream order.
    """

    def __init__(
        self, group: dist.ProcessGroup, device: torch.device, dtype: torch.dtype, max_numel: int, shots: int
    ) -> None:
        import torch.distributed._symmetric_memory as symmetric_memory

        # The kernels move 16 bytes at a time, and two-shot splits the message over ranks.
        self.quantum = 16 // dtype.itemsize * group.size()
        self.buffer = symmetric_memory.empty(_round_up(max_numel, self.quantum), dtype=dtype, device=device)
        self.buffer.zero_()
        symmetric_memory.rendezvous(self.buffer, group)
        self.group_name = group.group_name
        self.one_shot = shots == 1

    def __call__(self, summand: torch.Tensor) -> torch.Tensor:
        window = self.buffer[: _round_up(summand.numel(), self.quantum)]
        window[: summand.numel()].copy_(summand.view(-1))
        if self.one_shot:
            total: torch.Tensor = torch.ops.symm_mem.one_shot_all_reduce(window, "sum", self.group_name)
            return total[: summand.numel()].view_as(summand)
        torch.ops.symm_mem.two_shot_all_reduce_(window, "sum", self.group_name)
        summand.view(-1).copy_(window[: summand.numel()])
        return summand


class ReduceScatterAllGather:
    """A reduce-scatter and an all-gather on the default group, padded to a multiple of the number of ranks."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group

    def __call__(self, summand: torch.Tensor) -> torch.Tensor:
        num_ranks = self.group.size()
        padded = _pad_flat(summand, num_ranks)
        part = padded.new_empty(padded.numel() // num_ranks)
        _reduce_scatter(part, padded, group=self.group)
        _all_gather(padded, part, group=self.group)
        return padded[: summand.numel()].view_as(summand)


class AllGatherLocalSum:
    """An all-gather on the default group; each rank then adds the summands itself, in the order of ranks."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group

    def __call__(self, summand: torch.Tensor) -> torch.Tensor:
        return gather_parts(summand, self.group).sum(0)


class Collectives:
    """All exchanges of one rank, with a count of calls by name (Python calls: a graph replay adds none)."""

    def __init__(
        self, group: dist.ProcessGroup, device: torch.device, all_reduce: AllReduce, all_reduce_backend: str
    ) -> None:
        self.group = group
        self.device = device
        self.rank = group.rank()
        self.num_ranks = group.size()
        self.all_reduce_backend = all_reduce_backend
        """What sums: the backend that torch reports for the group, or the kernel's name."""
        self.calls: Counter[str] = Counter()
        self._all_reduce = all_reduce

    def capture(self) -> AbstractContextManager[Any]:
        """What has to be entered around the capture of a CUDA graph: some kernels register their buffers at its
        end."""
        around: Callable[[], AbstractContextManager[Any]] = getattr(self._all_reduce, "capture", nullcontext)
        return around()

    def close(self) -> None:
        """Give back what an all-reduce holds beside its group; every rank calls it."""
        close: Callable[[], None] = getattr(self._all_reduce, "close", lambda: None)
        close()

    @property
    def last_backend(self) -> str:
        """What summed in the last all-reduce: a backend may leave messages that are too large for it to another."""
        return getattr(self._all_reduce, "declined_to", "") or self.all_reduce_backend

    def all_reduce(self, summand: torch.Tensor) -> torch.Tensor:
        """The sum over ranks; ``summand`` is contiguous and may be overwritten."""
        self.calls["all_reduce"] += 1
        return self._all_reduce(summand)

    def all_to_all(self, parts: torch.Tensor) -> torch.Tensor:
        """``parts`` (num_ranks, ...): part r goes to rank r; returns the parts received, by source rank."""
        self.calls["all_to_all"] += 1
        received = torch.empty_like(parts)
        dist.all_to_all_single(received, parts, group=self.group)
        return received

    def all_gather(self, part: torch.Tensor) -> torch.Tensor:
        """The parts of all ranks (num_ranks, *part.shape), the same bits on every rank."""
        self.calls["all_gather"] += 1
        return gather_parts(part, self.group)


def build_collectives(config: EngineConfig, group: dist.ProcessGroup, device: torch.device) -> Collectives:
    """The exchanges that the configuration asks for. Raises torch's own error for a backend that cannot work here."""
    return collectives_of(config.allreduce, group, device, config.max_rows * config.size.hidden)


def collectives_of(name: str, group: dist.ProcessGroup, device: torch.device, max_numel: int) -> Collectives:
    """The exchanges with the all-reduce of this name (one of ``ALLREDUCES``), for messages of up to ``max_numel``
    elements. Raises torch's own error for a backend that cannot work here."""
    if name in ("nccl", "gloo"):
        # The default group where it is of that backend already, else a second group of the backend asked for.
        summing = group if dist.get_backend(group) == name else extra_group(name)
        return Collectives(group, device, GroupAllReduce(summing), dist.get_backend(summing))
    if name.startswith("symm_mem"):
        shots = 1 if name == "symm_mem_one_shot" else 2
        symmetric = SymmetricMemoryAllReduce(group, device, dtype_of(device), max_numel, shots)
        return Collectives(
            group, device, symmetric, f"symm_mem::{'one_shot_all_reduce' if shots == 1 else 'two_shot_all_reduce_'}"
        )
    composed = ReduceScatterAllGather(group) if name == "reduce_scatter_all_gather" else AllGatherLocalSum(group)
    return Collectives(group, device, composed, f"{dist.get_backend(group)}:{name}")


def gather_parts(part: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """The parts of all ranks, (num_ranks, *part.shape)."""
    # Gathered along the first dimension: gloo checks that, NCCL would take the stacked shape as well.
    gathered = part.new_empty((group.size() * part.shape[0], *part.shape[1:]))
    _all_gather(gathered, part, group=group)
    return gathered.view(group.size(), *part.shape)


def _round_up(number: int, quantum: int) -> int:
    return -(-number // quantum) * quantum


def _pad_flat(tensor: torch.Tensor, quantum: int) -> torch.Tensor:
    flat = tensor.view(-1)
    missing = -flat.numel() % quantum
    return torch.nn.functional.pad(flat, (0, missing)) if missing else flat
