"""Slots of a node: near GPUs, cores of their own, and what a quarantined one costs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from runners.node_layout import NodeLayout, NoLayoutError, core_layout, gpu_layout
from runners.numa_facts import cpu_list, cpus_of, numa_cpus, numa_node_of
from runners.slot import Slot
from runners.slot_queue import SlotQueue
from runners.slots import NodeSlots, slot_here
from tests.support.packed_node import HALVES, NODES, PAIRS

SWITCHES = NODES["switches"]
CORES = {"numa_cpus": {"0": "0-7"}}


def slots(layout: NodeLayout = SWITCHES, *, is_shared: bool = True) -> NodeSlots:
    """Return a node's slots, all free."""
    return NodeSlots(layout, is_shared=is_shared)


def taken(of: NodeSlots, *widths: int) -> list[Slot]:
    """Return slots of these widths, one after the other."""
    found = []
    for ranks in widths:
        places = of.find(ranks)
        assert places is not None
        found.append(of.take(places))
    return found


def test_ranks_lie_behind_the_same_switch_and_on_the_same_socket() -> None:
    """A wide trial crosses sockets only where it needs more GPUs than one has."""
    assert set(SWITCHES.choices(2)) == set(PAIRS)
    assert set(SWITCHES.choices(4)) == set(HALVES)
    assert SWITCHES.choices(8) == (tuple(range(8)),)
    assert len(NODES["NVLink"].choices(4)) == 70, "behind NVSwitches all GPUs are equally near"
    assert SWITCHES.choices(9) == () and SWITCHES.choices(3) != ()


def test_every_trial_of_a_width_lies_alike() -> None:
    """Two GPUs are bridged: a pair must not be measured there and another one over the bus, as if they were equal."""
    rows = ["X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X SYS", "SYS SYS SYS X"]
    assert len(gpu_layout({"gpu_count": 4, "links": rows, **CORES}).choices(2)) == 6
    bridged = ["X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X"]
    assert gpu_layout({"gpu_count": 4, "links": bridged, **CORES}).choices(2) == ((0, 1), (2, 3))


def test_small_trials_leave_whole_groups_to_larger_ones() -> None:
    """The second single trial goes beside the first, and the pair next to them."""
    assert [slot.gpus for slot in taken(slots(), 1, 1, 2, 4)] == [(0,), (1,), (2, 3), (4, 5, 6, 7)]


def test_the_cores_next_to_the_gpus_are_divided_among_them() -> None:
    """With their twins (the second half of the kernel's numbers), and with the memory of that node."""
    one, two = taken(slots(), 1, 4)
    assert one.cores == (*range(0, 8), *range(64, 72)) and one.memory_nodes == (0,)
    assert two.gpus == (4, 5, 6, 7)
    assert two.cores == (*range(32, 64), *range(96, 128)) and two.memory_nodes == (1,)
    whole = taken(slots(), 8)[0]
    assert len(whole.cores) == 128 and whole.memory_nodes == (0, 1)


def test_slots_at_the_same_time_share_neither_cores_nor_ports() -> None:
    """Eight trials of one GPU each."""
    found = taken(slots(), *[1] * 8)
    for one, other in itertools.combinations(found, 2):
        assert not set(one.cores) & set(other.cores)
        assert one.ports and other.ports and (one.ports[1] < other.ports[0] or other.ports[1] < one.ports[0])
        assert one.number != other.number


def test_alone_a_trial_has_near_gpus_and_every_core() -> None:
    """Nothing is bound where nobody is to be kept apart."""
    slot = taken(slots(is_shared=False), 2)[0]
    assert (slot.gpus, slot.cores, slot.ports, slot.is_shared) == ((0, 1), (), None, False)


def test_a_node_that_does_not_say_where_its_gpus_are_divides_all_cores() -> None:
    """As in a virtual machine."""
    layout = gpu_layout({"gpu_count": 2, "gpu_numa": [None, 0], "numa_cpus": {"0": "0-3", "1": "4-7"}})
    assert [place.cores for place in layout.places] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [place.node for place in layout.places] == [None, None]


def test_only_visible_gpus_are_given_away() -> None:
    """By number or by name."""
    facts = {"gpu_count": 4, "gpu_uuids": ["GPU-a", "GPU-b", "GPU-c", "GPU-d"], **CORES}
    assert [place.gpu for place in gpu_layout(facts, "3,1").places] == [1, 3]
    assert [place.gpu for place in gpu_layout(facts, "GPU-c").places] == [2]
    with pytest.raises(NoLayoutError, match="MIG-1"):
        gpu_layout(facts, "MIG-1")


@pytest.mark.parametrize(
    ("number", "cores"),
    [
        (1, [(0, 1, 2, 3, 4, 5, 6, 7)]),
        (2, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (3, [(0, 1), (2, 3, 4), (5, 6, 7)]),
        (4, [(0, 1), (2, 3), (4, 5), (6, 7)]),
    ],
)
def test_without_gpus_slots_are_made_of_cores(number: int, cores: list[tuple[int, ...]]) -> None:
    """Along the sockets where that works; a trial has one of them, whatever its ranks."""
    layout = core_layout({"numa_cpus": {"0": "0-3", "1": "4-7"}}, number)
    assert [place.cores for place in layout.places] == cores
    assert layout.choices(2) == layout.choices(1)
    assert [layout.places[places[0]].cores for places in layout.choices(2)] == cores


def test_more_trials_than_cores_are_refused() -> None:
    """They would share one."""
    with pytest.raises(NoLayoutError, match="9 trials at the same time need a core each, and this node has 8"):
        core_layout(CORES, 9)


def test_a_quarantined_slot_costs_itself_and_no_other() -> None:
    """Single trials go on beside it; one that needs its GPU cannot start any more."""
    queue = SlotQueue(slots(), most_at_once=8)
    for job in range(8):
        queue.put(job, 1, 0.0)
    assert len(queue.start(0.0)) == 8
    lost = queue.end(3, 10.0, "1.0 GiB of GPU memory")
    queue.put(8, 1, 10.0)
    assert queue.start(10.0) == [] and not queue.has_room(1)
    queue.end(4, 20.0)
    assert [(job, slot.gpus) for job, slot in queue.start(20.0)] == [(8, (4,))]
    assert lost.gpus == (3,) and queue.slots.lost == {3: "1.0 GiB of GPU memory"}
    assert queue.fits(1) and queue.fits(4) and not queue.fits(8)


def test_a_slot_that_is_taken_is_not_taken_again() -> None:
    """An error in the books is no second trial."""
    of = slots()
    of.take((0, 1))
    with pytest.raises(ValueError, match=r"\[1\] are not free"):
        of.take((1, 2))


def test_the_kernels_lists_are_read_and_written() -> None:
    """As in /sys/devices/system/node/node0/cpulist."""
    assert cpus_of("0-2,8,10-11\n") == [0, 1, 2, 8, 10, 11]
    assert cpu_list([11, 10, 8, 2, 1, 0]) == "0-2,8,10-11"
    assert cpus_of("") == [] and cpu_list([]) == ""


def test_a_node_without_usable_cores_is_left_out(tmp_path: Path) -> None:
    """Memory without processors, or processors that a container may not use."""
    for node, text in enumerate(("0-3", "4-7", "", "8-11")):
        folder = tmp_path / f"devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(text + "\n")
    assert numa_cpus(tmp_path, range(6)) == {"0": "0-3", "1": "4-5"}
    assert numa_cpus(tmp_path / "nothing", (1, 2)) == {"0": "1-2"}


def test_a_gpu_is_found_beside_its_memory(tmp_path: Path) -> None:
    """By its address as NVML writes it; -1 is a firmware that does not say."""
    for address, node in (("0000:1b:00.0", "1"), ("0000:43:00.0", "-1")):
        folder = tmp_path / "bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(node + "\n")
    assert numa_node_of("00000000:1B:00.0", tmp_path) == 1
    assert numa_node_of("00000000:43:00.0", tmp_path) is None
    assert numa_node_of("00000000:44:00.0", tmp_path) is None and numa_node_of(None, tmp_path) is None


def test_the_gpus_that_ray_gives_on_a_shared_node_become_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their cores and ports; where nobody knows what they are, nothing is bound."""
    facts = {"gpu_count": 8, "gpu_numa": [0, 0, 0, 0, 1, 1, 1, 1], "links": None, "gpu_uuids": None}
    monkeypatch.setattr("runners.slots.gpu_facts", lambda: facts)
    monkeypatch.setattr("runners.slots.numa_cpus", lambda: {"0": "0-31", "1": "32-63"})
    found = slot_here("5,2")
    assert found is not None and found.gpus == (2, 5) and found.is_shared
    assert found.cores == (*range(16, 24), *range(40, 48)) and found.memory_nodes == (0, 1)
    assert slot_here("MIG-1") is None and slot_here("9") is None
