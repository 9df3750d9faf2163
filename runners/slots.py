"""The slots of one node: which places are free, which a trial gets, and which are given to nobody any more.

Pure bookkeeping; whether a slot is really free again is found out elsewhere (`slot_return`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from runners.gpu_facts import gpu_facts
from runners.node_layout import NodeLayout, NoLayoutError, gpu_layout
from runners.numa_facts import numa_cpus
from runners.ports import FIRST_PORT, LAST_PORT
from runners.slot import Slot


class NodeSlots:
    """The places of one node and who has them."""

    def __init__(self, layout: NodeLayout, *, is_shared: bool) -> None:
        """Begin with everything free.

        Args:
            layout: The node's places.
            is_shared: Whether several trials may run at the same time: then each is bound to the cores of its places.
        """
        self.layout = layout
        self._is_shared = is_shared
        self._free = set(range(len(layout.places)))
        self._lost: dict[int, str] = {}

    @property
    def free(self) -> frozenset[int]:
        """Places that nobody has."""
        return frozenset(self._free)

    @property
    def lost(self) -> Mapping[int, str]:
        """Quarantined places, and why they are."""
        return MappingProxyType(self._lost)

    @property
    def num_usable(self) -> int:
        """How many places are not quarantined."""
        return len(self.layout.places) - len(self._lost)

    def usable_choices(self, ranks: int) -> list[tuple[int, ...]]:
        """Return the sets of places that a trial of so many ranks may still get, now or later."""
        return [choice for choice in self.layout.choices(ranks) if not self._lost.keys() & set(choice)]

    def find(self, ranks: int, within: Collection[int] | None = None) -> tuple[int, ...] | None:
        """Return free places for a trial of so many ranks, or None where it has to wait.

        Of all that are equally near, those whose neighbours are taken already: larger trials need whole groups.

        Args:
            ranks: Ranks of the trial.
            within: Places that may be used; by default every free one.
        """
        open_ = self._free if within is None else self._free & set(within)
        possible = [choice for choice in self.layout.choices(ranks) if open_.issuperset(choice)]
        return min(possible, key=lambda choice: (self._left_beside(choice), choice), default=None)

    def take(self, places: tuple[int, ...]) -> Slot:
        """Give free places to a trial.

        Raises:
            ValueError: one of them is not free.
        """
        if taken := set(places) - self._free:
            raise ValueError(f"places {sorted(taken)} are not free")
        self._free -= set(places)
        return self._slot(places)

    def give_back(self, slot: Slot) -> None:
        """Take a slot back that is clean."""
        self._free |= set(slot.places) - self._lost.keys()

    def quarantine(self, slot: Slot, why: str) -> None:
        """Take a slot back that is not clean: none of its places is given to a trial again."""
        self._lost.update(dict.fromkeys(slot.places, why))
        self._free -= self._lost.keys()

    def _left_beside(self, choice: tuple[int, ...]) -> list[int]:
        """Return how many places would stay free in each group around a choice, from the smallest group up."""
        left = self._free - set(choice)
        return [len(left.intersection(group)) for group in self.layout.groups if set(group) & set(choice)]

    def _slot(self, places: tuple[int, ...]) -> Slot:
        chosen = [self.layout.places[place] for place in places]
        gpus = tuple(place.gpu for place in chosen if place.gpu is not None)
        if not self._is_shared:
            return Slot(places=places, gpus=gpus)
        nodes = {place.node for place in chosen}
        window = (LAST_PORT - FIRST_PORT) // len(self.layout.places)
        first = FIRST_PORT + window * places[0]
        return Slot(
            places=places,
            gpus=gpus,
            # A share of too few cores may be empty, and a slot without cores of its own would have all of them.
            cores=tuple(sorted(core for place in chosen for core in place.cores)),
            memory_nodes=() if None in nodes else tuple(sorted(node for node in nodes if node is not None)),
            ports=(first, first + window - 1),
            is_shared=True,
        )


def slot_here(visible: str) -> Slot | None:
    """Return the slot of this machine that consists of the GPUs with these names, or None where nothing is known.

    On a node of somebody's cluster it is Ray that hands out the GPUs, to several agents.
    """
    facts = {**gpu_facts(), "numa_cpus": numa_cpus()}
    try:
        layout, wanted = gpu_layout(facts), {place.gpu for place in gpu_layout(facts, visible).places}
    except NoLayoutError:
        return None
    places = tuple(number for number, place in enumerate(layout.places) if place.gpu in wanted)
    return NodeSlots(layout, is_shared=True).take(places) if places else None
