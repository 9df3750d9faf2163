"""A trial on its slot: the cores and the memory that this thread, and everything it starts, runs on.

Affinity and memory policy are passed on to children and survive exec(), so engine, ranks and load client have them
without knowing. No numactl is needed.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from runners.numa_facts import cpu_list
from runners.slot import Slot

SYSTEM_CALLS = {"x86_64": (238, 239), "aarch64": (237, 236)}
"""Architecture → numbers of set_mempolicy and get_mempolicy. Source: Linux 6.12, syscall tables of x86 and arm64."""
PREFERRED_MANY = 5
"""Memory from these nodes as long as they have some: a trial must not die of a limit that only its slot has. Source:
Linux 5.15, include/uapi/linux/mempolicy.h."""
MOST_NODES = 1024
_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)
_Mask = ctypes.c_ulong * (MOST_NODES // _BITS)


class NotBoundError(OSError):
    """The cores of a slot are not to be had: whatever ran would run on those of its neighbours."""


@contextmanager
def bound(slot: Slot | None) -> Iterator[None]:
    """Keep this thread and all that it starts on the slot's cores, with memory from beside them where there is some.

    A container may forbid to set the policy of memory; it then comes from beside the core that first touches it, which
    is nearly the same.

    Raises:
        NotBoundError: this process may not use the slot's cores.
    """
    if slot is None or not slot.cores:
        yield
        return
    cores, policy = os.sched_getaffinity(0), _memory_policy()
    try:
        os.sched_setaffinity(0, slot.cores)
    except OSError as error:
        raise NotBoundError(f"the slot's cores {cpu_list(slot.cores)} cannot be used: {error.strerror}") from error
    try:
        if slot.memory_nodes:
            _set_memory_policy(PREFERRED_MANY, _mask(slot.memory_nodes))
        yield
    finally:
        os.sched_setaffinity(0, cores)
        if policy is not None:
            _set_memory_policy(*policy)


def slot_environment(slot: Slot, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment with the slot's GPUs, numbered as NVML numbers them."""
    if not slot.gpus:
        return dict(environment)
    gpus = ",".join(str(gpu) for gpu in slot.gpus)
    return {**environment, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": gpus}


def _memory_policy() -> tuple[int, ctypes.Array[ctypes.c_ulong]] | None:
    """Return this thread's policy and its nodes, or None where the kernel does not tell."""
    numbers = SYSTEM_CALLS.get(platform.machine())
    mode, nodes = ctypes.c_int(), _Mask()
    if numbers is None or _call(numbers[1], ctypes.byref(mode), nodes, MOST_NODES, None, 0) != 0:
        return None
    return mode.value, nodes


def _set_memory_policy(mode: int, nodes: ctypes.Array[ctypes.c_ulong]) -> bool:
    numbers = SYSTEM_CALLS.get(platform.machine())
    has_nodes = any(nodes)
    return numbers is not None and _call(numbers[0], mode, nodes if has_nodes else None, MOST_NODES * has_nodes) == 0


def _mask(nodes: Sequence[int]) -> ctypes.Array[ctypes.c_ulong]:
    mask = _Mask()
    for node in nodes:
        mask[node // _BITS] |= 1 << node % _BITS
    return mask


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
