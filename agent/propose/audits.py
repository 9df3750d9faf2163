"""One look into each confirmed dead end where nobody looked yet: as far as possible from every launch that supports it.

Two causes of one reason may look like one that is neither. What a dead end claims is tested where the claim is boldest:
a pass there refutes it before it costs the search anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.deadends.dead_end import DeadEnd
from agent.deadends.observation import trial_label
from agent.propose.history import History
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, Scalar

EACH = {Rung.PROBE: 2}
"""Audits of a dead end at a rung: probes cost little, and what is known dead is not launched."""
CONTEXTS = 12
"""Working assignments that are tried as the rest of an audit."""


def propose(history: History, rung: Rung) -> Iterator[Work]:
    """Yield one audit at a rung for each confirmed dead end of this study that was not looked into often enough."""
    for found in history.atlas.confirmed:
        support = _supporting(history, found) if found.origin is None else []
        tried = (probe for probe in history.probes if probe.counts or not probe.is_closed)
        done = sum(probe.work.about == found.id for probe in tried)
        if support and found.rung is rung and done < EACH.get(rung, 0):
            work = _audit(history, found, support)
            if work is not None:
                yield work


def _audit(history: History, found: DeadEnd, support: list[Assignment]) -> Work | None:
    for point in _boldest_first(history, found, support):
        work = history.admit(point, Kind.PROBE, f"does {found.id} hold here too?", base=history.base, about=found.id)
        if work is not None and work.resolved == point:
            return work
    return None


def _boldest_first(history: History, found: DeadEnd, support: list[Assignment]) -> list[Assignment]:
    """Return points inside the dead end, those first that share least with any launch that supports it."""
    own = {condition.parameter: found.observed[condition.parameter] for condition in found.conditions}
    visible = history.space.probe_parameters
    known: dict[str, set[str]] = {name: {repr(point[name]) for point in support} for name in visible}
    points: dict[str, tuple[int, Assignment]] = {}
    for context in _contexts(history, found):
        for candidate in _varied(history, {**context, **own}, own, known):
            point = history.space.normalise(candidate, history.facts)
            shared = sum(repr(point[name]) in values for name, values in known.items() if name not in own)
            points.setdefault(str(point), (shared, point))
    return [points[key][1] for key in sorted(points, key=lambda key: (points[key][0], key))]


def _varied(
    history: History, point: Assignment, own: dict[str, Scalar], known: dict[str, set[str]]
) -> Iterator[Assignment]:
    """The point, and the point with another value of a parameter that was the same in all supporting launches."""
    yield point
    for name, values in known.items():
        if name not in own and len(values) == 1:
            for value in history.space.parameters[name].domain:
                yield {**point, name: value}


def _contexts(history: History, found: DeadEnd) -> list[Assignment]:
    points = history.working_at(found.rung)
    return [points[key] for key in sorted(points)][-CONTEXTS:]


def _supporting(history: History, found: DeadEnd) -> list[Assignment]:
    labels = set(found.support)
    return [trial.work.resolved for trial in (*history.trials, *history.probes) if trial_label(trial) in labels]
