"""The part of a node that one trial has to itself while others run beside it."""

from __future__ import annotations

from runners.frozen import Frozen
from runners.numa_facts import cpu_list


class Slot(Frozen):
    """Places of a node for one trial: its GPUs, cores, memory and ports."""

    places: tuple[int, ...]
    """Numbers of its places in the node's layout, in order."""
    gpus: tuple[int, ...] = ()
    """Indices of its GPUs, as NVML counts."""
    cores: tuple[int, ...] = ()
    """Processors that everything of the trial runs on; empty: those of the node."""
    memory_nodes: tuple[int, ...] = ()
    """Nodes of the machine's memory next to it; empty: not known, or all."""
    ports: tuple[int, int] | None = None
    """First and last TCP port that a server of the trial may take; None: any."""
    is_shared: bool = False
    """Whether other trials may run on the node at the same time."""

    @property
    def number(self) -> int:
        """A number that no other slot has at the same time."""
        return self.places[0]

    def words(self) -> str:
        """Return what it is, for a reader."""
        gpus = f"GPU{'s' * (len(self.gpus) > 1)} {cpu_list(self.gpus)}" if self.gpus else ""
        cores = f"core{'s' * (len(self.cores) > 1)} {cpu_list(self.cores)}" if self.cores else ""
        return " with ".join(filter(None, (gpus, cores))) or "the whole node"
