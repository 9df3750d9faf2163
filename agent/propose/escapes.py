"""Escapes: the near variants of what is dead, each tried once at the cheapest rung that can tell.

Everything else stays as it was in the failing launch, so that a pass says that the variant makes the difference. One
that passes is unlocked for the search (`History.admit`).
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.deadends.dead_end import DeadEnd, DeadEndState, Escape, EscapeState
from agent.deadends.variants import escape_rung
from agent.propose import collectives, sums
from agent.propose.history import History
from agent.propose.second_launch import LARGEST_SHARE
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces.assignment import is_one_of


def probes(history: History) -> tuple[Work, ...]:
    """Return the probes of variants that were not tried yet, or nothing."""
    room = collectives.room(history)
    if room <= 0 or collectives.is_searching(history):
        return ()
    works = {work.identity: work for work in _works(history, Rung.PROBE)}
    return tuple(works.values())[: min(collectives.BATCH, room)]


def launch(history: History) -> Work | None:
    """Return the launch of a variant that only a launch can judge, or None; it counts among the confirmations."""
    spent = sums.num_confirmations(history)
    return None if spent >= LARGEST_SHARE * history.budget else next(_works(history, Rung.FULL), None)


def _works(history: History, rung: Rung) -> Iterator[Work]:
    for found in history.atlas.dead_ends:
        for escape in found.escapes:
            is_open = escape.state is EscapeState.UNTRIED and _rung(history, found, escape) is rung
            if is_open and (rung is Rung.PROBE or _is_sure(found)):
                work = _work(history, found, escape, rung)
                if work is not None:
                    yield work


def _rung(history: History, found: DeadEnd, escape: Escape) -> Rung:
    """The cheapest rung that can tell; what a probe could not look at, a launch has to show."""
    about = f"escape of {found.id}"
    unseen = (probe.work.resolved for probe in history.probes if probe.is_not_probed and probe.work.about == about)
    is_unseen = any(all(is_one_of(each[name], (value,)) for name, value in escape.instead.items()) for each in unseen)
    if is_unseen or Rung.PROBE not in history.rungs:
        return Rung.FULL
    return escape_rung(found, escape, history.space)


def _is_sure(found: DeadEnd) -> bool:
    """A launch is worth it where the value is confirmed dead, or nothing but its conditions is suspected."""
    named = {condition.parameter for condition in found.conditions}
    return found.state is DeadEndState.CONFIRMED or set(found.suspects) == named


def _work(history: History, found: DeadEnd, escape: Escape, rung: Rung) -> Work | None:
    point = history.space.normalise({**found.observed, **escape.instead}, history.facts)
    if not all(is_one_of(point[name], (value,)) for name, value in escape.instead.items()):
        return None  # the variant has no meaning beside the other values
    kind = Kind.PROBE if rung is Rung.PROBE else Kind.CONFIRM
    stage, about = f"does {escape.changes} work instead of {found}?", f"escape of {found.id}"
    return history.admit(point, kind, stage, base=history.base, about=about, may_unlock=True)
