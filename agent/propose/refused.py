"""Candidates for launches that the map refused before: a search comes back to the same ones again and again."""

from __future__ import annotations

from functools import cached_property

from agent.propose.admission import Refusal, barriers, still_locked
from agent.propose.history import History
from agent.propose.points import values_of
from agent.propose.prepared import facts_of, prepared, replaced_values
from search_spaces import Assignment, Scalar

MOST_KEPT = 2**14
"""Candidates of which it is kept. All are forgotten where there are more."""

Known = dict[tuple[Scalar, ...], tuple[str, Refusal]]
"""Values of a candidate → key of what would be asked for, and why it is refused."""


class Refused:
    """What lies in confirmed dead ends, as far as it was asked about.

    It holds while the same is confirmed, and the same is known of what the engine replaces. It is a cache: without it,
    the same is refused.
    """

    def __init__(self, history: History) -> None:
        self._history, self._names = history, tuple(history.space.parameters)

    def again(self, candidate: Assignment) -> bool:
        """Return whether a candidate was refused before, and still is; it is tallied as ever."""
        found = self._known.get(self._key(candidate))
        if found is None or self._history.memory.is_resolved(found[0]):
            return False
        self._history.refusals.append(found[1])
        self._history.ruled_out[found[1].dead_end] += 1
        return True

    def note(self, candidate: Assignment, num_refusals: int) -> None:
        """Take in that a candidate was not admitted, and that there had been so many refusals before it was asked."""
        history = self._history
        asked, why = prepared(history, candidate).key, history.refusals[num_refusals:]
        if why and why[0].dead_end in self._confirmed and not history.memory.is_resolved(asked):
            self._known[self._key(candidate)] = asked, why[0]

    def _key(self, candidate: Assignment) -> tuple[Scalar, ...]:
        return values_of(candidate, self._names)

    @cached_property
    def _confirmed(self) -> frozenset[str]:
        return frozenset(found.id for found in self._history.atlas.confirmed)

    @cached_property
    def _known(self) -> Known:
        history = self._history
        locked = str(sorted(still_locked(history)))
        of = (history.runner, history.space, facts_of(history), barriers(history), replaced_values(history), locked)
        found: Known = history.memo.derived("refused", of, dict)
        if len(found) >= MOST_KEPT:
            found.clear()
        return found
