"""What a search asks of the same assignments again and again, worked out once for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.propose.prepared import facts_of
from search_spaces import Assignment, Facts, Scalar, SearchSpace, assignment_key

if TYPE_CHECKING:
    from agent.propose.history import History

MOST_KEPT = 2**15
"""Assignments of which it is kept. It is a cache, and all are forgotten where there are more."""


@dataclass(frozen=True, slots=True)
class Point:
    """What the space alone says of an assignment."""

    key: str
    visible: tuple[str, ...]
    """Texts of the values that a probe can see."""
    is_baseline: bool
    """Whether it has the values of the baseline."""
    length: int | None
    """How many tokens it drafts, 0 as the baseline, None where its values do not say."""


class Points:
    """The assignments of one space on one node."""

    def __init__(self, space: SearchSpace, facts: Facts) -> None:
        self._space, self._facts = space, facts
        self._names, self._visible = tuple(space.parameters), space.probe_parameters
        self._known: dict[tuple[Scalar, ...], Point] = {}

    def of(self, assignment: Assignment) -> Point:
        """Return what the space says of an assignment."""
        key = values_of(assignment, self._names)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            found = self._known[key] = self._made(assignment)
        return found

    def _made(self, assignment: Assignment) -> Point:
        is_baseline = all(assignment[name] == value for name, value in self._space.baseline.items())
        visible = tuple(repr(assignment[name]) for name in self._visible)
        length = 0 if is_baseline else self._length(assignment)
        return Point(assignment_key(assignment), visible, is_baseline, length)

    def _length(self, assignment: Mapping[str, Scalar]) -> int | None:
        parameters = self._space.parameters
        names: Sequence[str] = self._space.draft_length_names
        active = (name for name in names if parameters[name].is_active(assignment, self._facts))
        value = next((assignment[name] for name in active), None)
        return value if isinstance(value, int) else None


def values_of(assignment: Assignment, names: Sequence[str]) -> tuple[Scalar, ...]:
    """Return the values of these parameters, by which assignments are told apart: no two of a parameter are equal."""
    return tuple([assignment[name] for name in names])


def points_of(history: History) -> Points:
    """Return the assignments of a study's space."""
    of = (history.space, facts_of(history))
    return history.memo.derived("points", of, lambda: Points(history.space, history.facts))
