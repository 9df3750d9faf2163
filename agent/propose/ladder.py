"""Promotion: before an assignment is launched, the cheaper rungs that it has not passed are asked.

Resolve costs next to nothing, so everything climbs it. A probe and a dummy launch are worth their price where the
chance that they show a failure, times the price of a launch, exceeds it. What starts the study climbs resolve only:
what serves is the yardstick of the other rungs. The first dummy launch is a control: the base, which serves, must pass.
"""

from __future__ import annotations

import itertools

from agent.deadends.dead_end import DeadEndState
from agent.propose import prices, sums
from agent.propose.history import History
from agent.propose.rechecks import STILL_DEAD
from agent.propose.risk import Risk
from agent.store.trial import Kind, Work
from runners import Rung

STARTS = (Kind.DEFAULT, Kind.BASELINE)
MOST_LOST = 3
"""Questions in a row that a rung may leave without an answer before it is not asked any more."""
SAVED = 1.0
"""What a failing launch costs that a cheaper rung would have shown, in launches."""


def first_below(history: History, work: Work) -> Work | None:
    """Return what is to run before this launch, or None where it is due."""
    is_new = work.rung is Rung.FULL and work.kind is not Kind.REPEAT and not _is_launched(history, work)
    if not is_new:
        return None
    if work.stage.endswith(STILL_DEAD):
        return _stale_at_its_rung(history, work)
    for rung in history.rungs:
        if rung is not Rung.FULL and _is_open(history, rung, work) and _is_worth(history, rung, work):
            return check_of(work, rung)
    return None


def control(history: History) -> Work | None:
    """Return the dummy launch of the base, once."""
    if history.base is None or history.memory.was_asked(Rung.DUMMY, history.base):
        return None
    base = history.base
    stage = "does what serves pass the dummy rung?"
    work = Work(kind=Kind.PROBE, rung=Rung.DUMMY, requested=base, resolved=base, stage=stage, base=base, climbs=True)
    return None if _is_given_up(history, work) else work


def check_of(work: Work, rung: Rung) -> Work:
    """Return the same assignment at a cheaper rung."""
    return Work(
        kind=Kind.PROBE,
        rung=rung,
        requested=work.requested,
        resolved=work.resolved,
        rewrites=work.rewrites,
        stage=work.stage,
        base=work.base,
        climbs=True,
    )


def _stale_at_its_rung(history: History, work: Work) -> Work | None:
    """A stale dead end is checked at the rung that shows it; what the user doubts, the real model decides."""
    found = history.atlas.find(work.about)
    if found is None or found.state is not DeadEndState.STALE or found.rung not in (Rung.RESOLVE, Rung.DUMMY):
        return None
    is_there = found.rung in history.rungs and history.memory.is_trusted(found.rung)
    if not is_there or not _is_open(history, found.rung, work):
        return None
    check = check_of(work, found.rung)
    return check.model_copy(update={"about": work.about})


def is_answering(history: History, rung: Rung) -> bool:
    """Return whether a rung still answers: not when its last questions all went without an answer."""
    latest_first = reversed(history.probes if rung is Rung.PROBE else history.checks)
    asked = (trial for trial in latest_first if trial.work.rung is rung and trial.is_closed)
    last = list(itertools.islice(asked, MOST_LOST))
    return len(last) < MOST_LOST or not all(trial.is_our_fault for trial in last)


def _is_launched(history: History, work: Work) -> bool:
    return work.key in sums.launched_keys(history)


def _is_open(history: History, rung: Rung, work: Work) -> bool:
    if history.memory.was_asked(rung, work.resolved) or not is_answering(history, rung):
        return False
    return not _is_given_up(history, check_of(work, rung))


def _is_given_up(history: History, work: Work) -> bool:
    return history.interruptions[work.identity] > 0


def _is_worth(history: History, rung: Rung, work: Work) -> bool:
    if rung is Rung.RESOLVE:
        return True
    if work.kind in STARTS or history.base is None or prices.room(history, rung) <= 0:
        return False
    if rung is Rung.DUMMY and not history.memory.is_trusted(rung):
        return False
    return Risk(history).fails_at(rung, work.resolved) * SAVED > prices.price(history, rung)


def wants_control(history: History, work: Work) -> bool:
    """Return whether a launch would climb the dummy rung, were it known to work."""
    memory = history.memory
    if Rung.DUMMY not in history.rungs or work.rung is not Rung.FULL or work.kind in (*STARTS, Kind.REPEAT):
        return False
    if history.base is None or _is_launched(history, work) or memory.is_trusted(Rung.DUMMY):
        return False
    is_payable = prices.room(history, Rung.DUMMY) > 1 and is_answering(history, Rung.DUMMY)
    price = prices.price(history, Rung.DUMMY)
    return is_payable and Risk(history).fails_at(Rung.DUMMY, work.resolved) * SAVED > price
