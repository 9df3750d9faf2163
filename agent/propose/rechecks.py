"""Re-checks: dead ends that are stale here, and those that the user wants to be checked once more.

A re-check takes the conditions over to a working assignment, at the cheapest rung that shows the failure. A pass
refutes the dead end; a failure for the same reason confirms it under the facts of now.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.inheritance import least_demanding
from agent.propose import collectives, sums
from agent.propose.history import History
from agent.propose.second_launch import LARGEST_SHARE
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, assignment_key

MOST_ATTEMPTS = 2
"""Trials of a stale dead end, of which the second differs from the first: they may fail for another reason."""
RECHECKED = (DeadEndState.CONFIRMED, DeadEndState.STALE)
"""States in which a dead end can be checked again: all else says already that it may be launched."""

STILL_DEAD = "still dead?"
"""How the stage of a re-check ends: an audit is about a dead end too."""


def asked_probes(history: History) -> tuple[Work, ...]:
    """Return the probes that the user's wishes ask for, or nothing."""
    return tuple(_works(history, _asked_for(history), Rung.PROBE))


def asked_launch(history: History) -> Work | None:
    """Return the launch that the user's wishes ask for, or None."""
    return next(_works(history, _asked_for(history), Rung.FULL), None)


def stale_probes(history: History) -> tuple[Work, ...]:
    """Return the probes that stale dead ends ask for, or nothing."""
    room = collectives.room(history)
    if room <= 0 or collectives.is_searching(history):
        return ()
    return tuple(_works(history, _stale(history), Rung.PROBE))[: min(collectives.BATCH, room)]


def stale_launch(history: History) -> Work | None:
    """Return the launch that stale dead ends ask for, most valuable first, or None; it counts as a confirmation."""
    spent = sums.num_confirmations(history)
    if spent >= LARGEST_SHARE * history.budget:
        return None
    return next(_works(history, _stale(history), Rung.FULL), None)


def recheck_rung(history: History, found: DeadEnd) -> Rung:
    """Return the cheapest rung that shows the failure."""
    if any(probe.is_not_probed and probe.work.about == found.id for probe in history.probes):
        return Rung.FULL
    visible = all(condition.parameter in history.space.probe_parameters for condition in found.conditions)
    is_cheap = visible and found.rung is Rung.PROBE and Rung.PROBE in history.rungs
    return Rung.PROBE if is_cheap else Rung.FULL


def _asked_for(history: History) -> Iterator[tuple[DeadEnd, int]]:
    """Yield what the user wants to be checked again, with the number of trials of it that were run already."""
    for wanted, wished in history.rechecks.items():
        found = history.atlas.find(wanted)
        if found is not None and found.state in RECHECKED:
            done = num_rechecks(history, found)
            if done < wished and not _waits(history, found):
                yield found, done


def _stale(history: History) -> Iterator[tuple[DeadEnd, int]]:
    """Yield the stale ones: first what most likely matters most, and what rules out more."""
    order = {name: index for index, name in enumerate(history.space.parameters)}
    ranked = sorted(
        history.atlas.stale,
        key=lambda found: (min(order[each.parameter] for each in found.conditions), len(found.conditions), found.id),
    )
    for found in ranked:
        if (done := num_rechecks(history, found)) < MOST_ATTEMPTS and not _waits(history, found):
            yield found, done


def num_rechecks(history: History, found: DeadEnd) -> int:
    """Return how many closed trials checked this dead end again."""
    everything = (*history.trials, *history.probes, *history.checks)
    trials = (t for t in everything if t.counts and not t.is_not_probed)
    return sum(t.work.about == found.id and t.work.stage.endswith(STILL_DEAD) for t in trials)


def _waits(history: History, found: DeadEnd) -> bool:
    return any(t.work.about == found.id for t in (*history.trials, *history.probes, *history.checks) if not t.is_closed)


def _works(history: History, due: Iterable[tuple[DeadEnd, int]], rung: Rung) -> Iterator[Work]:
    for found, done in due:
        if recheck_rung(history, found) is rung:
            points = list(_points(history, found))
            for point in points[min(done, len(points)) :] or points[-1:]:
                work = _work(history, found, point, rung)
                if work is not None:
                    yield work
                    break


def _points(history: History, found: DeadEnd) -> Iterator[Assignment]:
    """The conditions in the base, in the best known, and in the launch that failed: the first that lies in it."""
    values = {each.parameter: least_demanding(each, history.space) for each in found.conditions}
    starts = (history.base, history.incumbent, found.observed)
    points = (history.space.normalise({**start, **values}, history.facts) for start in starts if start is not None)
    yield from {assignment_key(point): point for point in points if found.matches(point)}.values()


def _work(history: History, found: DeadEnd, point: Assignment, rung: Rung) -> Work | None:
    kind = Kind.PROBE if rung is Rung.PROBE else Kind.CONFIRM
    stage = f"is {found} {STILL_DEAD}"
    known = history.probed if rung is Rung.PROBE else history.identities
    names = (f"{assignment_key(point)}/{kind.value}/{repeat}" for repeat in itertools.count())
    repeat = next(number for number, name in enumerate(names) if name not in known)
    return history.admit(point, kind, stage, base=history.base, about=found.id, repeat=repeat, may_unlock=True)
