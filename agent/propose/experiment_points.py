"""Which launches may tell the causes of a failure apart: some of its values in an assignment that works.

Taking over half of what may be the cause halves the question, whichever way it is answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from agent.deadends.explain import Explanation
from agent.deadends.lexicon import FAMILY_WEIGHTS
from agent.deadends.rivals import Rival
from agent.deadends.suspicion import Suspicion
from agent.propose import working
from agent.propose.expectation import likely_causes
from agent.propose.history import History
from agent.propose.limits import reach
from runners import Rung
from search_spaces import Assignment, Comparison, Condition, Scalar
from search_spaces.condition import is_number

CONTEXTS = 8
"""Working assignments that are tried as the other half of an experiment: those that differ most from the failure."""
MOST_CONTEXTS = 24
"""Working assignments among which they are looked for."""
MOST_LACKS = 4
"""Conditions that a cause may lack, likeliest first, without which it is tried."""
MOST_CAUSES = 12
"""Causes that are tried on their own."""


def candidates(
    history: History, suspicion: Suspicion, rung: Rung, num_contexts: int = CONTEXTS
) -> Iterator[Assignment]:
    """Yield assignments worth a look at a rung, not in normal form and some of them more than once."""
    failed, causes = suspicion.failed.seen.assignment, likely_causes(suspicion)
    known_to_work = _known_to_work(history, rung)
    contexts = _contexts(history, suspicion, causes, rung)
    if causes:
        contexts = _alive_first(history, contexts, _values(causes[0], failed))
    for context in contexts[:num_contexts]:
        yield from ({**context, **_held(rival, failed)} for rival in suspicion.rivals)
        yield from _lacking(history, suspicion, context)
        names: set[str] = set()
        for rank, cause in enumerate(causes):
            known, names = names, names | {condition.parameter for condition in cause.conditions}
            if names != known:
                yield {**context, **{name: failed[name] for name in names}}
            if rank < MOST_CAUSES:
                yield {**context, **_values(cause, failed)}
                yield from _other_thresholds(history, cause, {**context, **_values(cause, failed)})
        if causes:
            elsewhere = _elsewhere(history, causes, known_to_work, {**context, **_values(causes[0], failed)})
            yield elsewhere
            yield from _other_thresholds(history, causes[0], elsewhere)
            yield from _without_company(history, causes, {**context, **_values(causes[0], failed)})
    if len(causes) == 1:  # clear what it is: left to see it fail once more, wherever that is possible
        yield from ({**context, **_values(causes[0], failed)} for context in contexts[num_contexts:])


def _lacking(history: History, suspicion: Suspicion, context: Assignment) -> Iterator[Assignment]:
    """The likeliest cause without what it may lack, where chance was not seen."""
    point = {**context, **_values(suspicion.best, suspicion.failed.seen.assignment)}
    own = {condition.parameter for condition in suspicion.best.conditions}
    for lack in suspicion.lacks[:MOST_LACKS]:
        for without in _breaking(history, lack.condition, point):
            yield without
            if (place := lack.places[0][0]).parameter not in own:
                yield from _breaking(history, place, without)


def _breaking(history: History, condition: Condition, point: Assignment) -> Iterator[Assignment]:
    """The same where a condition does not hold: as it is, or with each of the other values."""
    if not condition.matches(point):
        yield point
        return
    for value in history.space.parameters[condition.parameter].domain:
        if not condition.matches({condition.parameter: value}):
            yield {**point, condition.parameter: value}


def _values(cause: Explanation, failed: Assignment) -> Assignment:
    return {condition.parameter: failed[condition.parameter] for condition in cause.conditions}


def _held(rival: Rival, failed: Assignment) -> Assignment:
    return {condition.parameter: failed[condition.parameter] for condition in rival.conditions}


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


def _elsewhere(
    history: History, causes: list[Explanation], known_to_work: dict[str, list[Scalar]], point: Assignment
) -> Assignment:
    """The likeliest cause with all else as different from the other causes as working values allow."""
    own = {condition.parameter for condition in causes[0].conditions}
    blamed: dict[str, list[tuple[Condition, float]]] = defaultdict(list)
    for cause in causes[1:]:
        for condition in cause.conditions:
            if condition.parameter not in own:
                blamed[condition.parameter].append((condition, cause.share))
    changed = dict(point)
    for name, accusations in blamed.items():
        values = [point[name], *known_to_work.get(name, ())]
        domain = history.space.parameters[name].domain
        changed[name] = min(values, key=partial(_accused, accusations, domain))
    return changed


def _accused(accusations: list[tuple[Condition, float]], domain: Sequence[Scalar], value: Scalar) -> float:
    return sum(share * reach(condition, value, domain) for condition, share in accusations)


def _known_to_work(history: History, rung: Rung) -> dict[str, list[Scalar]]:
    """Return the values of each parameter with which something worked at a rung or above it.

    Any other value may be a cause of its own: a failure with it would raise a new question.
    """
    found: dict[str, dict[str, Scalar]] = defaultdict(dict)
    for point in working.latest_working_at(history, rung).values():
        for name in history.space.probe_parameters if rung is Rung.PROBE else history.space.parameters:
            found[name][repr(point[name])] = point[name]
    return {name: [values[key] for key in sorted(values)] for name, values in found.items()}


def _contexts(history: History, suspicion: Suspicion, causes: list[Explanation], rung: Rung) -> list[Assignment]:
    """Return working assignments of this rung or above, those first that share least with what failed.

    Of an ordered parameter, more shares "at least" with the failure, and less "at most", which is rarely a cause.
    """
    failed = suspicion.failed.seen
    visible = history.space.probe_parameters if rung is Rung.PROBE else tuple(history.space.parameters)
    points = working.latest_working_at(history, rung)
    suspects = {each.parameter for cause in causes for each in cause.conditions}
    weight = {name: 3 if name in suspects else 1 for name in visible}
    shared = {
        key: sum(weight[name] * _shared(history, name, point[name], failed.assignment[name]) for name in visible)
        for key, point in points.items()
    }
    return [points[key] for key in sorted(points, key=lambda key: (shared[key], key))]


def _alive_first(history: History, contexts: list[Assignment], values: Assignment) -> list[Assignment]:
    """Return the contexts, of the first ones those last where the values cannot run: they lie in a known dead end."""
    first, rest = contexts[:MOST_CONTEXTS], contexts[MOST_CONTEXTS:]
    points = (history.space.normalise({**context, **values}, history.facts) for context in first)
    is_dead = [history.atlas.match_confirmed(point) is not None for point in points]
    order = sorted(range(len(first)), key=is_dead.__getitem__)
    return [*(first[index] for index in order), *rest]


def _shared(history: History, name: str, value: Scalar, failed: Scalar) -> float:
    """Return how much of what may be the cause a value shares with the one that failed."""
    if value == failed:
        return 1.0
    is_ordered = history.space.parameters[name].monotone and is_number(value) and is_number(failed)
    if not is_ordered:
        return 0.0
    return FAMILY_WEIGHTS[Comparison.AT_LEAST if float(value) > float(failed) else Comparison.AT_MOST]
