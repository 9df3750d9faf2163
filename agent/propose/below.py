"""Studies that stop below the top: what the node and the engine offer, without one launch of the real model.

Arguments of the default and of every single change from it are resolved, the collectives are searched as in any study,
and, where the study may go so far, the same assignments are launched as dummies; the budget bounds these.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.propose import collectives, escapes, experiments
from agent.propose.history import History
from agent.propose.ladder import is_answering
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, assignment_key

BATCH = 8
STAGE = "what does this node offer?"


def propose(history: History) -> tuple[Work, ...]:
    """Return what to run next, or nothing when everything is settled."""
    if (resolved := _checks(history, Rung.RESOLVE))[:BATCH]:
        return tuple(resolved[:BATCH])
    for batch in (collectives.propose, escapes.probes, experiments.at_probe_rung):
        if Rung.PROBE in history.rungs and (probes := batch(history)):
            return probes
    spent = sum(trial.work.rung is Rung.DUMMY for trial in history.checks if trial.counts or not trial.is_closed)
    return tuple(_checks(history, Rung.DUMMY)[:1]) if spent < history.budget else ()


def _checks(history: History, rung: Rung) -> list[Work]:
    if rung not in history.rungs or not is_answering(history, rung):
        return []
    found: dict[str, Work] = {}
    for point in _points(history):
        work = history.admit(point, Kind.PROBE, STAGE, base=history.base, rung=rung)
        if work is not None and not history.memory.was_asked(rung, work.resolved):
            found.setdefault(work.identity, work)
    return [work for work in found.values() if history.interruptions[work.identity] == 0]


def _points(history: History) -> Iterator[Assignment]:
    base = history.base or history.default
    changes = [history.space.normalise(each, history.facts) for each in history.space.single_changes(base)]
    points = [base, history.without_speculation(base), *changes]
    yield from {assignment_key(point): point for point in points}.values()
