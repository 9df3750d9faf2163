"""What runs on a slot stays on its cores, children included, and the worker is afterwards as it was."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runners.slot import Slot
from runners.slot_binding import NotBoundError, _memory_policy, bound, slot_environment

CORES = sorted(os.sched_getaffinity(0))
AFFINITY = "import os; print(sorted(os.sched_getaffinity(0)))"
PREFERRED_MANY = 5


def test_children_run_on_the_slots_cores() -> None:
    """Without knowing of it; afterwards this process has all of its cores again."""
    with bound(Slot(places=(0,), cores=(CORES[-1],))):
        printed = subprocess.run([sys.executable, "-c", AFFINITY], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == f"[{CORES[-1]}]"
    assert sorted(os.sched_getaffinity(0)) == CORES


@pytest.mark.skipif(_memory_policy() is None, reason="this container may not ask for the policy of memory")
def test_memory_comes_from_beside_the_cores() -> None:
    """And from wherever there is some once that is full: no limit of our own kills a trial."""
    before = _memory_policy()
    with bound(Slot(places=(0,), cores=(CORES[0],), memory_nodes=(0,))):
        inside = _memory_policy()
    after = _memory_policy()
    assert before and inside and after
    assert (inside[0], next(iter(inside[1]))) == (PREFERRED_MANY, 1)
    assert (after[0], list(after[1])) == (before[0], list(before[1]))


def test_cores_that_are_not_ours_are_said() -> None:
    """Whatever ran would run on a neighbour's."""
    with pytest.raises(NotBoundError, match="4095"), bound(Slot(places=(0,), cores=(4095,))):
        pass
    assert sorted(os.sched_getaffinity(0)) == CORES


@pytest.mark.parametrize("slot", [None, Slot(places=(0,))])
def test_without_cores_of_its_own_nothing_is_bound(slot: Slot | None) -> None:
    """A trial alone has the node."""
    with bound(slot):
        assert sorted(os.sched_getaffinity(0)) == CORES


def test_the_slots_gpus_are_the_only_visible_ones() -> None:
    """Numbered as NVML does: CUDA would put the fastest first. Without GPUs nothing is set."""
    found = slot_environment(Slot(places=(2, 3), gpus=(2, 3)), {"A": "1", "CUDA_VISIBLE_DEVICES": "0,1,2,3"})
    assert found == {"A": "1", "CUDA_VISIBLE_DEVICES": "2,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert slot_environment(Slot(places=(0,)), {"A": "1"}) == {"A": "1"}
