"""Where a confirmed dead end begins: bisection between the nearest value that failed and the nearest that passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.deadends.dead_end import DeadEnd
from agent.propose.history import History
from agent.reasons import Reason
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, Comparison, Condition, Scalar, matches_all
from search_spaces.condition import is_number

LEFT_TO_LATER_TRIALS = frozenset({Reason.GPU_OOM})
"""Reasons whose limit moves with everything else that takes memory: later trials narrow it, or what is left."""


def propose(history: History, rung: Rung) -> Iterator[Work]:
    """Yield one experiment at a rung for each confirmed threshold whose place is not known exactly."""
    yield from _works(history, [each for each in _here(history, rung) if each.reason not in LEFT_TO_LATER_TRIALS])


def propose_late(history: History, rung: Rung) -> Iterator[Work]:
    """Yield the same for the limits that later trials usually narrow: worth a launch when nothing else is."""
    yield from _works(history, [each for each in _here(history, rung) if each.reason in LEFT_TO_LATER_TRIALS])


def _here(history: History, rung: Rung) -> Iterator[DeadEnd]:
    return (found for found in history.atlas.confirmed if found.rung is rung)


def _works(history: History, dead_ends: Iterable[DeadEnd]) -> Iterator[Work]:
    for found in dead_ends:
        for condition in found.conditions:
            beyond = _unknown_beyond(history, found, condition)
            if beyond and (work := _experiment(history, found, condition, beyond[len(beyond) // 2])) is not None:
                yield work


def _unknown_beyond(history: History, found: DeadEnd, condition: Condition) -> list[Scalar]:
    """Return the values just outside a threshold, the nearest first, up to the first that is known to pass."""
    if condition.comparison is Comparison.EQUAL:
        return []
    domain = history.space.parameters[condition.parameter].domain
    numbers = sorted((value for value in domain if is_number(value)), key=float)
    outside = [value for value in numbers if not condition.matches({condition.parameter: value})]
    nearest_first = reversed(outside) if condition.comparison is Comparison.AT_LEAST else outside
    unknown: list[Scalar] = []
    for value in nearest_first:
        if _passes(history, found, condition, value):
            break
        unknown.append(value)
    return unknown


def _passes(history: History, found: DeadEnd, condition: Condition, value: Scalar) -> bool:
    others = tuple(other for other in found.conditions if other != condition)
    working = history.working_at(found.rung).values()
    return any(point[condition.parameter] == value and matches_all(others, point) for point in working)


def _experiment(history: History, found: DeadEnd, condition: Condition, value: Scalar) -> Work | None:
    """Return a working assignment with the dead end's other values and this one, or None where none may run."""
    inside = {each.parameter: found.observed[each.parameter] for each in found.conditions}
    kind = Kind.PROBE if found.rung is Rung.PROBE else Kind.CONFIRM
    stage, about = f"where does {found.id} begin?", found.reason.value
    for context in _contexts(history, found):
        point = history.space.normalise({**context, **inside, condition.parameter: value}, history.facts)
        if point[condition.parameter] != value:
            continue
        work = history.admit(point, kind, stage, base=history.base, about=about)
        if work is not None and work.resolved == point:
            return work
    return None


def _contexts(history: History, found: DeadEnd) -> list[Assignment]:
    """Return working assignments, those first that share most with the dead end: they need the fewest changes."""
    passed = history.working_at(found.rung)
    matching = {key: sum(each.matches(point) for each in found.conditions) for key, point in passed.items()}
    return [passed[key] for key in sorted(passed, key=lambda key: (-matching[key], key))[:8]]
