"""Which launches may tell the causes of a failure apart: some of its values in an assignment that works.

Taking over half of what may be the cause halves the question, whichever way it is answered.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.deadends.explain import Explanation
from agent.deadends.suspicion import Suspicion
from agent.propose.expectation import likely_causes
from agent.propose.history import History
from runners import Rung
from search_spaces import Assignment

CONTEXTS = 8
"""Working assignments that are tried as the other half of an experiment: those that differ most from the failure."""
MOST_CAUSES = 12
"""Causes that are tried on their own."""


def candidates(history: History, suspicion: Suspicion, rung: Rung) -> Iterator[Assignment]:
    """Yield assignments worth a look at a rung, not in normal form and some of them more than once."""
    failed, causes = suspicion.failed.seen.assignment, likely_causes(suspicion)
    for context in _contexts(history, suspicion, causes, rung):
        names: set[str] = set()
        for rank, cause in enumerate(causes):
            known, names = names, names | {condition.parameter for condition in cause.conditions}
            if names != known:
                yield {**context, **{name: failed[name] for name in names}}
            if rank < MOST_CAUSES:
                yield {**context, **_values(cause, failed)}
                yield from _other_thresholds(history, cause, {**context, **_values(cause, failed)})
        if causes:
            yield from _without_company(history, causes, {**context, **_values(causes[0], failed)})


def _values(cause: Explanation, failed: Assignment) -> Assignment:
    return {condition.parameter: failed[condition.parameter] for condition in cause.conditions}


def _other_thresholds(history: History, cause: Explanation, point: Assignment) -> Iterator[Assignment]:
    """The same with more or less of an ordered parameter: where does it begin, and does it go on to the end?"""
    for condition in cause.conditions:
        parameter = history.space.parameters[condition.parameter]
        if parameter.monotone:
            for value in parameter.domain:
                yield {**point, condition.parameter: value}


def _without_company(history: History, causes: list[Explanation], point: Assignment) -> Iterator[Assignment]:
    """The likeliest cause with another value of a parameter that was the same in all failures so far."""
    own = {condition.parameter for condition in causes[0].conditions}
    for name in dict.fromkeys(each.parameter for cause in causes[:MOST_CAUSES] for each in cause.conditions):
        for value in history.space.parameters[name].domain if name not in own else ():
            yield {**point, name: value}


def _contexts(history: History, suspicion: Suspicion, causes: list[Explanation], rung: Rung) -> list[Assignment]:
    """Return working assignments of this rung or above, those first that share least with what failed."""
    failed = suspicion.failed.seen
    visible = history.space.probe_parameters if rung is Rung.PROBE else tuple(history.space.parameters)
    points = history.working_at(rung)
    suspects = {each.parameter for cause in causes for each in cause.conditions}
    weight = {name: 3 if name in suspects else 1 for name in visible}
    shared = {
        key: sum(weight[name] for name in visible if point[name] == failed.assignment[name])
        for key, point in points.items()
    }
    return [points[key] for key in sorted(points, key=lambda key: (shared[key], key))[:CONTEXTS]]
