"""What keeps a piece of work from being run: the map, a cheaper rung, or that it was run already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.deadends.blocking import Blocking
from agent.deadends.dead_end import DeadEnd
from agent.propose.in_flight import RUNS_NOW
from agent.propose.points import points_of
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Scalar

if TYPE_CHECKING:
    from agent.propose.history import History

ATTEMPTS = 3
"""Launches of the same work that may end by the harness's own fault before it is given up."""
CLOSED_ALREADY = "closed already"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A candidate that lies in a dead end."""

    dead_end: str
    """Id of the dead end."""
    rung: Rung
    key: str
    """Key of the assignment."""


def ruled_out(history: History, point: Assignment, about: str, rung: Rung) -> str | None:
    """Return the id of the dead end that forbids an assignment, and note it, or None."""
    atlas = history.atlas
    dead_end = atlas.match_confirmed(point, about) if about else _match(history, point)
    if dead_end is None:
        return None
    history.refusals.append(Refusal(dead_end.id, rung, points_of(history).of(point).key))
    return dead_end.id


def barriers(history: History) -> str:
    """Return what is confirmed, in words."""
    atlas = history.atlas
    return history.memo.derived("confirmed", (atlas,), lambda: "\n".join(map(_barrier, atlas.confirmed)))


def _match(history: History, point: Assignment) -> DeadEnd | None:
    """Return a dead end that forbids launching an assignment, or None: a confirmed one where there is any."""
    atlas = history.atlas
    if (place := confirmed_blocking(history).place(point)) is not None:
        return atlas.confirmed[place]
    return None if (place := _suspected_blocking(history).place(point)) is None else atlas.suspected[place]


def confirmed_blocking(history: History) -> Blocking:
    """Return what the confirmed dead ends forbid. They are seldom others, if other objects."""
    of = (history.space, barriers(history))
    return history.memo.derived("confirmed blocking", of, lambda: Blocking(history.atlas.confirmed))


def _suspected_blocking(history: History) -> Blocking:
    memo, suspected = history.memo, history.atlas.suspected

    def blocking() -> Blocking:
        return memo.derived("suspected blocking", (history.space, *suspected), lambda: Blocking(suspected))

    return memo.derived("suspected blocking now", (history.atlas,), blocking)


def _barrier(found: DeadEnd) -> str:
    """Return what a dead end forbids, in words."""
    return f"{found.id} {found} {found.within}"


def why_not(history: History, work: Work) -> str | None:
    """Return why a piece of work that the map does not rule out must not or need not be run all the same, or None."""
    atlas, point = history.atlas, work.resolved
    is_recheck = atlas.find(work.about) is not None  # whether the dead end, and so the cheaper rung, is right
    if not is_recheck and (why := kept_below(history, point, work.rung)) is not None:
        return why
    closed = history.identities
    if work.kind is Kind.PROBE:
        closed = history.closed_probes if work.rung is Rung.PROBE else history.checked
    if work.identity in closed or work.asked_identity in closed:
        return CLOSED_ALREADY
    if history.in_flight.holds(work):
        return RUNS_NOW
    return "interrupted three times" if history.interruptions[work.identity] >= ATTEMPTS else None


def kept_below(history: History, point: Mapping[str, Scalar], rung: Rung) -> str | None:
    """Return why a cheaper rung keeps an assignment from this one, or None: it failed there, or is being asked.

    What failed as a probe is the map's matter: a probe sees a part of an assignment.
    """
    for lower in history.rungs:
        if lower is rung:
            break
        if lower is not Rung.PROBE and history.memory.failed(lower, point) is not None:
            return f"failed at the {lower.value} rung"
    return "being asked at a cheaper rung" if rung is Rung.FULL and history.memory.is_asked(point) else None


def still_locked(history: History) -> frozenset[tuple[str, str]]:
    """Return the locked values that no escape has opened: a launch or probe of theirs that passed would have."""
    parameters = history.space.parameters
    locked = {(name, repr(value)) for name, each in parameters.items() for value in each.locked}

    def add(opened: set[tuple[str, str]], trial: Trial) -> None:
        if trial.works:
            visible = history.space.probe_parameters if trial.work.rung is Rung.PROBE else parameters
            opened |= locked & {(name, repr(trial.work.resolved[name])) for name in visible}

    parts = {"trials": history.trials, "probes": history.probes} if locked else {}
    opened = (history.memo.fold(f"opened by {name}", part, set, add) for name, part in parts.items())
    return frozenset(locked.difference(*opened))
