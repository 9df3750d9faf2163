"""A node in simulated time whose trials take what they take: what the queue of its slots makes of a mix of widths."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from runners.node_layout import NodeLayout, gpu_layout
from runners.slot import Slot
from runners.slot_queue import SlotQueue
from runners.slots import NodeSlots

SOCKETS = {"gpu_numa": [0, 0, 0, 0, 1, 1, 1, 1], "numa_cpus": {"0": "0-31,64-95", "1": "32-63,96-127"}}


def links(*groups: Sequence[Sequence[int]]) -> list[str]:
    """Return the rows of `nvidia-smi topo -m` for GPUs in nested groups: PIX within the first kind, then NODE, SYS."""
    names = ("PIX", "NODE", "SYS")

    def between(one: int, other: int) -> str:
        kinds = (name for name, parts in zip(names, groups, strict=False) if any({one, other} <= set(p) for p in parts))
        return "X" if one == other else next(kinds, "SYS")

    gpus = range(8)
    return [" ".join(between(one, other) for other in gpus) for one in gpus]


PAIRS, HALVES = [(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 1, 2, 3), (4, 5, 6, 7)]
NODES: dict[str, NodeLayout] = {
    "switches": gpu_layout({"gpu_count": 8, "links": links(PAIRS, HALVES), **SOCKETS}),
    "sockets": gpu_layout({"gpu_count": 8, "links": links([], HALVES), **SOCKETS}),
    "NVLink": gpu_layout({"gpu_count": 8, "links": [" ".join(["NV18"] * 8)] * 8, **SOCKETS}),
}
"""Nodes with eight GPUs: two behind each PCIe switch, two switches a socket; four a socket; all behind NVSwitches."""


@dataclass(frozen=True)
class Job:
    """A trial: how many GPUs it takes, and for how long."""

    ranks: int
    seconds: float


@dataclass
class Packed:
    """What came of it."""

    busy: float = 0.0
    """GPU seconds used while a trial waited."""
    available: float = 0.0
    """GPU seconds there were in that time."""
    waited: dict[int, float] = field(default_factory=dict)
    """Job → seconds from its arrival to its start."""
    overtaken: dict[int, float] = field(default_factory=dict)
    """Job → GPU seconds that jobs used, while it waited, which came later."""
    order: list[int] = field(default_factory=list)
    """Jobs as they started."""
    end: float = 0.0

    @property
    def share(self) -> float:
        """Share of the GPU time that was used while a trial waited."""
        return self.busy / self.available if self.available else 1.0


class Node:
    """One run. It keeps its own books, so that an error of the queue's does not hide itself."""

    def __init__(self, layout: NodeLayout, jobs: Sequence[Job], depth: int, **policy: float) -> None:
        """Begin; `depth` trials are kept waiting until all have arrived."""
        self._queue = SlotQueue(NodeSlots(layout, is_shared=True), len(layout.places), **policy)
        self._jobs, self._depth, self._num_gpus = jobs, depth, len(layout.places)
        self._running: dict[int, Slot] = {}
        self._waiting: dict[int, float] = {}
        self._ends: list[tuple[float, int]] = []
        self._now = 0.0
        self.result = Packed()

    def run(self) -> Packed:
        """Run every job and return the figures of the time in which more were to come."""
        arrived = 0
        while arrived < len(self._jobs) or self._running or self._waiting:
            while arrived < len(self._jobs) and len(self._waiting) < self._depth:
                self._queue.put(arrived, self._jobs[arrived].ranks, self._now)
                self._waiting[arrived] = self._now
                arrived += 1
                self._start()
            assert self._running, "trials wait and nothing runs"
            at, job = heapq.heappop(self._ends)
            self._pass(at, counts=arrived < len(self._jobs))
            self._queue.end(job, at)
            del self._running[job]
            self._start()
        self.result.end = self._now
        return self.result

    def _start(self) -> None:
        for job, slot in self._queue.start(self._now):
            assert isinstance(job, int)
            taken = {gpu for other in self._running.values() for gpu in other.gpus}
            cores = {core for other in self._running.values() for core in other.cores}
            assert len(slot.gpus) == self._jobs[job].ranks and not taken & set(slot.gpus), "a GPU is given twice"
            assert slot.cores and not cores & set(slot.cores), "a core is given twice"
            self._running[job] = slot
            self.result.order.append(job)
            self.result.waited[job] = self._now - self._waiting.pop(job)
            heapq.heappush(self._ends, (self._now + self._jobs[job].seconds, job))

    def _pass(self, at: float, *, counts: bool) -> None:
        elapsed, self._now = at - self._now, at
        used = sum(len(slot.gpus) for slot in self._running.values())
        if self._waiting and counts:
            self.result.busy += elapsed * used
            self.result.available += elapsed * self._num_gpus
        for job in self._waiting:
            later = sum(len(slot.gpus) for other, slot in self._running.items() if other > job)
            self.result.overtaken[job] = self.result.overtaken.get(job, 0.0) + elapsed * later


def pack(layout: NodeLayout, jobs: Sequence[Job], depth: int, **policy: float) -> Packed:
    """Run jobs on a node, with so many of them waiting as long as there are more.

    Args:
        layout: The node.
        jobs: In order of arrival.
        depth: How many wait.
        policy: `idle_share` and `patience` of the queue, in the place of its own.
    """
    return Node(layout, jobs, depth, **policy).run()
