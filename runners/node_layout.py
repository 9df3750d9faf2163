"""The places of a node on which trials can lie side by side: its GPUs with their cores, or, without GPUs, its cores.

Pure: everything comes from the node's facts. What may be measured against each other has to lie alike, so a trial of
so many ranks only ever gets GPUs that are as close together as they can be for every such trial on this node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise

from runners.numa_facts import cpus_of, runs_of

DISTANCES = {"X": 0, "NV": 1, "PIX": 2, "PXB": 3, "PHB": 4, "NODE": 5, "SYS": 6}
"""Kind of way between two GPUs, by the names of `nvidia-smi topo -m`, from the nearest to the farthest."""
FARTHEST = max(DISTANCES.values())


class NoLayoutError(ValueError):
    """The node's facts do not say on what trials could lie side by side; the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """The smallest part of a node that a trial can have to itself."""

    cores: tuple[int, ...]
    node: int | None
    """Node of the machine's memory (NUMA), where it is known."""
    gpu: int | None = None
    """Its index, as NVML counts; None on a node without GPUs."""


@dataclass(frozen=True)
class NodeLayout:
    """The places of a node, and how far they are from each other."""

    places: tuple[Place, ...]
    distances: tuple[tuple[int, ...], ...]

    @property
    def has_gpus(self) -> bool:
        """Whether each place is a GPU."""
        return bool(self.places) and self.places[0].gpu is not None

    def size(self, ranks: int) -> int:
        """Return how many places a trial of so many ranks takes: a GPU for each; on cores one place for all of it."""
        return ranks if self.has_gpus else 1

    def choices(self, ranks: int) -> tuple[tuple[int, ...], ...]:
        """Return the sets of places that a trial of so many ranks may get; empty where there is no room for one."""
        return _choices(self.distances, self.size(ranks))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Sets of places that are nearer to each other than to others, the smallest sets first."""
        everything = range(len(self.places))
        found = {_reached(self.distances, place, limit) for limit in range(FARTHEST + 1) for place in everything}
        return tuple(sorted(found, key=lambda group: (len(group), group)))


def gpu_layout(facts: Mapping[str, object], visible: str | None = None) -> NodeLayout:
    """Return the layout of a node with GPUs; the cores of a memory node are divided among the GPUs next to it.

    Args:
        facts: The node's.
        visible: CUDA_VISIBLE_DEVICES as the user set it: other GPUs are not ours.

    Raises:
        NoLayoutError: it names GPUs that the facts do not have.
    """
    gpus = _visible_gpus(facts, visible)
    nodes = _list(facts.get("gpu_numa"))
    near = {gpu: node if isinstance(node := _at(nodes, gpu), int) else None for gpu in gpus}
    cores = {int(name): cpus_of(text) for name, text in _numa_cpus(facts).items()}
    if any(near[gpu] not in cores for gpu in gpus):  # not known of each: nothing is known of any
        near, cores = dict.fromkeys(gpus), {-1: sorted(core for each in cores.values() for core in each)}
    beside = {gpu: [other for other in gpus if near[other] == near[gpu]] for gpu in gpus}
    places = []
    for gpu in gpus:
        node = near[gpu]
        share = _share(cores[-1 if node is None else node], beside[gpu].index(gpu), len(beside[gpu]))
        places.append(Place(cores=share, node=node, gpu=gpu))
    rows = [str(row).split() for row in _list(facts.get("links"))]
    distances = tuple(tuple(_distance(rows, one, other) for other in gpus) for one in gpus)
    return NodeLayout(tuple(places), distances)


def core_layout(facts: Mapping[str, object], number: int) -> NodeLayout:
    """Return the layout of a node without GPUs: its cores in so many parts, along its memory nodes where that works.

    Raises:
        NoLayoutError: there are fewer cores than parts.
    """
    cores = {int(name): cpus_of(text) for name, text in _numa_cpus(facts).items()}
    total, nodes = sum(map(len, cores.values())), sorted(cores)
    if number > total:
        raise NoLayoutError(f"{number} trials at the same time need a core each, and this node has {total}")
    if number % len(nodes) == 0 and all(len(each) >= number // len(nodes) for each in cores.values()):
        parts = number // len(nodes)
        places = [Place(_share(cores[node], part, parts), node) for node in nodes for part in range(parts)]
    else:
        row = [core for node in nodes for core in cores[node]]
        ends = [len(row) * part // number for part in range(number + 1)]
        places = [Place(tuple(row[first:last]), None) for first, last in pairwise(ends)]
    apart = tuple(
        tuple(0 if one is other else 1 if one.node == other.node else FARTHEST for other in places) for one in places
    )
    return NodeLayout(tuple(places), apart)


@lru_cache(maxsize=64)
def _choices(distances: tuple[tuple[int, ...], ...], size: int) -> tuple[tuple[int, ...], ...]:
    """Return the sets of that size within the smallest distance at which as many disjoint ones exist as have room."""
    number = len(distances)
    if not 0 < size <= number:
        return ()
    for limit in range(FARTHEST + 1):
        near = tuple(
            group
            for group in combinations(range(number), size)
            if all(distances[one][other] <= limit for one, other in combinations(group, 2))
        )
        if near and _fit(near, frozenset(range(number)), number // size):
            return near
    return ()


def _fit(groups: Sequence[tuple[int, ...]], free: frozenset[int], wanted: int) -> bool:
    """Return whether so many of the groups lie apart from each other within the free places."""
    if wanted == 0:
        return True
    usable = [group for group in groups if free.issuperset(group)]
    if not usable:
        return False
    first = min(group[0] for group in usable)
    # Either some group takes the first place that any of them can take, or none does.
    if any(_fit(usable, free - set(group), wanted - 1) for group in usable if group[0] == first):
        return True
    return len(free) - 1 >= wanted * len(usable[0]) and _fit(usable, free - {first}, wanted)


def _reached(distances: Sequence[Sequence[int]], place: int, limit: int) -> tuple[int, ...]:
    return tuple(other for other, distance in enumerate(distances[place]) if distance <= limit)


def _share(cores: Iterable[int], part: int, parts: int) -> tuple[int, ...]:
    """Return one of equal parts. Each run of numbers is divided alike: the second run is that of the first's twins."""
    runs = runs_of(cores)
    return tuple(core for run in runs for core in run[len(run) * part // parts : len(run) * (part + 1) // parts])


def _distance(rows: Sequence[Sequence[str]], one: int, other: int) -> int:
    if one == other:
        return 0
    row = rows[one] if one < len(rows) else ()
    name = row[other] if other < len(row) else ""
    return DISTANCES.get("NV" if name.startswith("NV") else name, FARTHEST)


def _visible_gpus(facts: Mapping[str, object], visible: str | None) -> list[int]:
    number = int(str(facts.get("gpu_count") or 0))
    if visible is None or not visible.strip():
        return list(range(number))
    uuids = [str(each) for each in _list(facts.get("gpu_uuids"))]
    names = [name.strip() for name in visible.split(",")]
    found = [int(name) if name.isdigit() else uuids.index(name) if name in uuids else -1 for name in names]
    if any(not 0 <= gpu < number for gpu in found):
        raise NoLayoutError(f"CUDA_VISIBLE_DEVICES={visible} names GPUs that this node does not show")
    return sorted(set(found))


def _numa_cpus(facts: Mapping[str, object]) -> Mapping[str, str]:
    found = facts.get("numa_cpus")
    if isinstance(found, Mapping) and found:
        return {str(node): str(cpus) for node, cpus in found.items()}
    raise NoLayoutError("the node's facts do not say which cores it has")


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _at(values: Sequence[object], index: int) -> object:
    return values[index] if index < len(values) else None
