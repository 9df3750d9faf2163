"""Where a confirmed dead end begins: bisection between the nearest value that failed and the nearest that passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from agent.deadends.dead_end import DeadEnd
from agent.deadends.observation import trial_label
from agent.propose import tallies, working
from agent.propose.closed import of_closed
from agent.propose.history import History
from agent.reasons import Reason
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, Comparison, Condition, Scalar, matches_all
from search_spaces.condition import is_number

LEFT_TO_LATER_TRIALS = frozenset({Reason.GPU_OOM})
"""Reasons whose limit moves with everything else that takes memory: later trials narrow it, or what is left."""

CONTEXTS = 40
"""Working assignments among which one is looked for that the values may be put into: other dead ends are in the way."""
MOST_TIMES = 4
"""Experiments with one value where something failed already: they may end by another cause, and then tell nothing."""


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
        suspected = _suspected_limits(history, found)
        contexts = _contexts(history, found)
        for condition in found.conditions:
            values = _worth_asking(history, found, condition, suspected.get(condition.parameter, condition))
            works = (_experiment(history, found, condition, value, contexts) for value in values)
            if (work := next((work for work in works if work is not None), None)) is not None:
                yield work


def _suspected_limits(history: History, found: DeadEnd) -> dict[str, Condition]:
    """Return the limits that begin earlier than is believed if no failure at them was chance."""
    edges = history.atlas.edges_of(found)
    return {limit.parameter: limit for each in edges for limit in each.conditions if limit not in found.conditions}


def _worth_asking(history: History, found: DeadEnd, condition: Condition, suspected: Condition) -> Iterator[Scalar]:
    """Yield the values that tell where a limit begins, the best first.

    That is the middle of those where nothing failed yet. Where nothing is left of these, it is the last one where
    something failed, which may have been chance: once more, in another launch.
    """
    comparison = suspected.comparison
    beyond_it = partial(_unknown_beyond, history, found, condition, comparison)
    unknown = of_closed(history, f"unknown beyond {found.id} {condition}", beyond_it, (str(comparison),))
    failed = [value for value in unknown if suspected.matches({condition.parameter: value})]
    if beyond := unknown[len(failed) :]:
        yield beyond[len(beyond) // 2]
    for value in reversed(failed):
        if _times_asked(history, found, condition, value) < MOST_TIMES:
            yield value


def _times_asked(history: History, found: DeadEnd, condition: Condition, value: Scalar) -> int:
    experiments = tallies.in_stage(history, _stage(found))
    return sum(trial.work.resolved[condition.parameter] == value for trial in experiments)


def _unknown_beyond(history: History, found: DeadEnd, condition: Condition, comparison: Comparison) -> list[Scalar]:
    """Return the values just outside a threshold, the nearest first, up to the first that is known to pass."""
    if comparison is Comparison.EQUAL:
        return []
    domain = history.space.parameters[condition.parameter].domain
    numbers = sorted((value for value in domain if is_number(value)), key=float)
    outside = [value for value in numbers if not condition.matches({condition.parameter: value})]
    nearest_first = reversed(outside) if comparison is Comparison.AT_LEAST else outside
    unknown: list[Scalar] = []
    for value in nearest_first:
        if _passes(history, found, condition, value):
            break
        unknown.append(value)
    return unknown


def _passes(history: History, found: DeadEnd, condition: Condition, value: Scalar) -> bool:
    others = tuple(other for other in found.conditions if other != condition)
    points = history.working_at(found.rung).values()
    return any(point[condition.parameter] == value and matches_all(others, point) for point in points)


def _experiment(
    history: History, found: DeadEnd, condition: Condition, value: Scalar, contexts: list[Assignment]
) -> Work | None:
    """Return a working assignment with the dead end's other values and this one, or None where none may run."""
    inside = {each.parameter: found.observed[each.parameter] for each in found.conditions}
    kind = Kind.PROBE if found.rung is Rung.PROBE else Kind.CONFIRM
    stage, about = _stage(found), found.reason.value
    for context in contexts:
        point = history.space.normalise({**context, **inside, condition.parameter: value}, history.facts)
        if point[condition.parameter] != value or history.atlas.match_confirmed(point) is not None:
            continue
        work = history.admit(point, kind, stage, base=history.base, about=about)
        if work is not None and work.resolved == point:
            return work
    return None


def _stage(found: DeadEnd) -> str:
    return f"where does {found.id} begin?"


def _contexts(history: History, found: DeadEnd) -> list[Assignment]:
    """Return working assignments, those first that share most with the dead end: they need the fewest changes.

    Where failures beyond it may have been chance, what all of these had in common comes last: it may come from there.
    """
    passed = working.latest_working_at(history, found.rung)
    of = (len(passed), *islice(passed, 1), *islice(reversed(passed), 1), str(found), *history.atlas.edges_of(found))
    return history.memo.derived(f"threshold {found.id}", of, lambda: _ordered(history, found, passed))


def _ordered(history: History, found: DeadEnd, passed: dict[str, Assignment]) -> list[Assignment]:
    common = _in_common(_failures_beyond(history, found))
    matching = {key: sum(each.matches(point) for each in found.conditions) for key, point in passed.items()}
    shared = {key: sum(point[name] == value for name, value in common.items()) for key, point in passed.items()}
    return [passed[key] for key in sorted(passed, key=lambda key: (shared[key], -matching[key], key))[:CONTEXTS]]


def _failures_beyond(history: History, found: DeadEnd) -> list[Assignment]:
    labels = {label for edge in history.atlas.edges_of(found) for label in edge.support}
    everything = (*history.trials, *history.probes) if labels else ()
    return [trial.work.resolved for trial in everything if trial_label(trial) in labels]


def _in_common(points: list[Assignment]) -> Assignment:
    """Return the values that are the same in all of these."""
    return {
        name: value for name, value in (points[0] if points else {}).items() if all(p[name] == value for p in points)
    }
