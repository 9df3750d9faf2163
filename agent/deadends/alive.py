"""The conjunctions of up to three conditions that a failure satisfies and that nothing contradicts.

All of one and two conditions; of three those in which no two would do, and two with what the message names. Passes are
bits, so that each question is one operation on integers.
"""

from __future__ import annotations

from agent.deadends.evidence import Evidence, Failed

Groups = list[list[tuple[int, int]]]
"""For each parameter, its conditions: number, and bits of what passed with it."""


OpenPairs = list[tuple[int, int, int, int]]
"""Position of the second parameter, both conditions, and bits of what passed with them."""


class Alive:
    """What is left of the conjunctions that one failure satisfies."""

    def __init__(self, failed: Failed, evidence: Evidence) -> None:
        self._failed = failed
        passed = evidence.passed(failed.place, failed.failure.reason)
        self._groups = [[(number, passed(number)) for number in group] for group in failed.conditions]
        singles = [(number,) for group in self._groups for number, bits in group if not bits]
        self._pairs, self._contradicted = _pairs(self._groups)
        self.small: list[tuple[int, ...]] = [*singles, *self._pairs]
        """Of one condition and two, each in the order of the space's parameters."""

    def with_named(self) -> list[tuple[int, ...]]:
        """Return the pairs with one more parameter that the message accuses: likelier than without it, if longer."""
        places = {number: place for place, group in enumerate(self._failed.conditions) for number in group}
        named = [place for place, name in enumerate(self._failed.seen.visible) if name in self._failed.blames]
        found = {
            tuple(sorted((*pair, number), key=places.__getitem__))
            for pair in self._pairs
            for place in named
            if place not in map(places.__getitem__, pair)
            for number in self._failed.conditions[place]
        }
        return sorted(found)

    def triples(self) -> list[tuple[int, ...]]:
        """Return those of three conditions in which no two would do."""
        return _triples(self._groups, self._contradicted, set(self._pairs))


def _pairs(groups: Groups) -> tuple[list[tuple[int, ...]], OpenPairs]:
    alive: list[tuple[int, ...]] = []
    contradicted: OpenPairs = []
    for place, group in enumerate(groups):
        for second in range(place + 1, len(groups)):
            for one, bits_of_one in group:
                for two, bits_of_two in groups[second]:
                    bits = bits_of_one & bits_of_two
                    if bits:
                        contradicted.append((second, one, two, bits))
                    else:
                        alive.append((one, two))
    return alive, contradicted


def _triples(groups: Groups, contradicted: OpenPairs, alive: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Add a third condition to what two do not explain, where the third with either of them does not either."""
    return [
        (one, two, three)
        for second, one, two, bits in contradicted
        for group in groups[second + 1 :]
        for three, bits_of_three in group
        if not bits & bits_of_three and (one, three) not in alive and (two, three) not in alive
    ]
