"""One look into each confirmed dead end where nobody looked yet: as far as possible from every launch that supports it.

Two causes of one reason may look like one that is neither. What a dead end claims is tested where the claim is boldest:
a pass there refutes it before it costs the search anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from agent.deadends.dead_end import DeadEnd
from agent.propose import tallies
from agent.propose.history import History
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Comparison, Parameter, Scalar
from search_spaces.condition import is_number

EACH = {Rung.PROBE: 1}
"""Audits of a dead end at a rung that told something: probes cost little, and what is known dead is not launched."""
MOST_TRIED = 5
"""Audits of a dead end in all: they may fail by another cause, and then tell nothing."""
CONTEXTS, MOST_CONTEXTS = 12, 48
"""Working assignments that are tried as the rest of an audit, and among how many they are looked for."""


def propose(history: History, rung: Rung) -> Iterator[Work]:
    """Yield one audit at a rung for each confirmed dead end of this study that was not looked into often enough."""
    for found in history.atlas.confirmed:
        tried = tallies.probes_about(history, found.id) if found.rung is rung and found.origin is None else []
        told = sum(_tells(probe, found) for probe in tried)
        is_due = found.origin is None and found.rung is rung and told < EACH.get(rung, 0) and len(tried) < MOST_TRIED
        if is_due and (work := _audit(history, found)) is not None:
            yield work


def _tells(probe: Trial, found: DeadEnd) -> bool:
    """Return whether a probe failed as the dead end says; one that passed took it away, and one in flight may tell."""
    failure = probe.outcome.failure if probe.outcome else None
    return failure is None or failure.reason is found.reason


def _audit(history: History, found: DeadEnd) -> Work | None:
    for point in _boldest_first(history, found):
        work = history.admit(point, Kind.PROBE, f"does {found.id} hold here too?", base=history.base, about=found.id)
        if work is not None and work.resolved == point:
            return work
    return None


def _boldest_first(history: History, found: DeadEnd) -> list[Assignment]:
    """Return points inside the dead end, those first that share least with any launch that supports it."""
    latest = tuple(itertools.islice(reversed(history.working_at(found.rung)), MOST_CONTEXTS))
    dead = (f"{each.id} {each}" for each in history.atlas.confirmed)
    of = (found.observed, found.support, *dead, *latest)
    return history.memo.derived(f"audits {found.id}", of, lambda: _ranked(history, found, latest))


def _ranked(history: History, found: DeadEnd, latest: Sequence[str]) -> list[Assignment]:
    support = [trial.work.resolved for trial in tallies.of_labels(history, found.support)]
    own = {condition.parameter: found.observed[condition.parameter] for condition in found.conditions}
    visible = history.space.probe_parameters
    known: dict[str, set[str]] = {name: {repr(point[name]) for point in support} for name in visible}
    equal = {each.parameter for each in found.conditions if each.comparison is Comparison.EQUAL}
    compared = {name: values for name, values in known.items() if name not in equal}
    points: dict[str, tuple[float, Assignment]] = {}
    if not support:
        return []
    for context in _contexts(history, found, latest, own, compared):
        for candidate in _varied(history, found, {**context, **own}, own, known):
            point = history.space.normalise(candidate, history.facts)
            if found.matches(point):
                points.setdefault(str(point), (_shared(history, point, compared), point))
    return [points[key][1] for key in sorted(points, key=lambda key: (points[key][0], key))]


def _varied(
    history: History, found: DeadEnd, point: Assignment, own: dict[str, Scalar], known: dict[str, set[str]]
) -> Iterator[Assignment]:
    """The point, with a value that no support had, and elsewhere beyond a limit."""
    yield point
    for name, values in known.items():
        unseen = (value for value in history.space.parameters[name].domain if repr(value) not in values)
        yield from ({**point, name: value} for value in unseen if name not in own)
    for name in (each.parameter for each in found.conditions if each.comparison is not Comparison.EQUAL):
        yield from ({**point, name: value} for value in history.space.parameters[name].domain)


def _contexts(
    history: History, found: DeadEnd, latest: Sequence[str], own: Assignment, known: dict[str, set[str]]
) -> list[Assignment]:
    """Return working assignments that share least with the support, and in which no other dead end strikes first."""
    points = history.working_at(found.rung)
    inside = {key: history.space.normalise({**points[key], **own}, history.facts) for key in latest}
    alive = [key for key in latest if history.atlas.match_confirmed(inside[key], found.id) is None]
    return [
        points[key] for key in sorted(alive, key=lambda key: (_shared(history, inside[key], known), key))[:CONTEXTS]
    ]


def _shared(history: History, point: Assignment, known: dict[str, set[str]]) -> float:
    """Return how much a point shares with the support: what lies beyond all of an ordered parameter shares least."""
    return sum(_nearness(history.space.parameters[name], point[name], values) for name, values in known.items())


def _nearness(parameter: Parameter, value: Scalar, known: set[str]) -> float:
    if repr(value) in known:
        return 1.0
    if not parameter.monotone or not is_number(value):
        return 0.0
    ordered = sorted((each for each in parameter.domain if is_number(each)), key=float)
    steps = (abs(ordered.index(value) - place) for place, each in enumerate(ordered) if repr(each) in known)
    return 1.0 / (1.0 + min(steps, default=len(ordered)))
