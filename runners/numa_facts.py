"""Which processors and which GPUs lie together, on one node of the machine's memory (NUMA). Read from /sys."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

SYS = Path("/sys")


def numa_cpus(sys: Path = SYS, allowed: Collection[int] | None = None) -> dict[str, str]:
    """Return memory node → the processors there that this process may use: `{"0": "0-31", "1": "32-63"}`.

    The texts are lists as the kernel writes them. A machine whose kernel does not tell has one node.
    """
    usable = os.sched_getaffinity(0) if allowed is None else set(allowed)
    paths = sorted((sys / "devices/system/node").glob("node[0-9]*/cpulist"), key=_number)
    nodes = {_number(path): set(cpus_of(path.read_text(encoding="ascii"))) & usable for path in paths}
    found = {str(node): cpu_list(cpus) for node, cpus in nodes.items() if cpus}
    return found or {"0": cpu_list(usable)}


def numa_node_of(bus_id: str | None, sys: Path = SYS) -> int | None:
    """Return the memory node next to a PCI device (`00000000:1B:00.0`, as NVML writes it); None where nobody tells."""
    if bus_id is None:
        return None
    domain, _, rest = bus_id.lower().partition(":")
    path = sys / "bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node"
    try:
        node = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None  # -1: the firmware does not say


def cpus_of(text: str) -> list[int]:
    """Return the numbers of a kernel's list such as `0-3,8`."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def cpu_list(cpus: Iterable[int]) -> str:
    """Return numbers as such a list."""
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs_of(cpus))


def runs_of(cpus: Iterable[int]) -> list[list[int]]:
    """Return numbers in order, split where one is missing."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return runs


def _number(path: Path) -> int:
    return int(path.parent.name.removeprefix("node"))
