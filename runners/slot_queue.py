"""Which waiting trial gets which slot of a node next. Pure: the time is given, nothing is started here.

First come, first served, as long as that does not leave places idle. A wide trial among narrow ones needs places that
come free one by one, and each stays idle until the last one is free. So it is made room for (`_Reservation`) once that
idle time is at most a small share of all the time used so far; until then whatever fits is started, the widest first.
No trial is overtaken for ever: past `PATIENCE` it is made room for whatever it costs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from runners.slot import Slot
from runners.slots import NodeSlots

IDLE_SHARE = 0.03
"""Share of the places' time that may be idle while somebody waits, for the sake of the order."""
PATIENCE = 20
"""How many times the longest trial so far may the whole node be used by others that came later."""


@dataclass
class _Waiting:
    job: Hashable
    ranks: int
    arrival: int
    overtaken: float = 0.0
    """Time of places used by trials that came later."""


@dataclass(frozen=True)
class _Run:
    slot: Slot
    ranks: int
    arrival: int
    since: float


@dataclass(frozen=True)
class _Reservation:
    job: Hashable
    places: frozenset[int]
    until: float
    """When they are expected to be free; who is expected to end before may still use them."""


class SlotQueue:
    """The trials of one node, waiting and running. A job is whatever its owner calls it."""

    def __init__(
        self, slots: NodeSlots, most_at_once: int, *, idle_share: float = IDLE_SHARE, patience: float = PATIENCE
    ) -> None:
        """Begin with an empty queue; `most_at_once` is how many trials may run at the same time."""
        self.slots = slots
        self._most, self._idle_share, self._patience = most_at_once, idle_share, patience
        self._waiting: list[_Waiting] = []
        self._running: dict[Hashable, _Run] = {}
        self._reservation: _Reservation | None = None
        self._arrivals = 0
        self._at = -math.inf
        self._busy = self._idle = 0.0
        self._longest = 0.0
        self._ended: dict[int, tuple[int, float]] = {}
        """Ranks → how many trials ended, and how long they took together."""

    @property
    def num_waiting(self) -> int:
        """How many trials wait for a slot."""
        return len(self._waiting)

    @property
    def running(self) -> dict[Hashable, Slot]:
        """Job → its slot."""
        return {job: run.slot for job, run in self._running.items()}

    def has_room(self, ranks: int) -> bool:
        """Whether a trial of so many ranks would start at once."""
        is_below = len(self._running) < self._most
        return is_below and not self._waiting and self.slots.find(ranks) is not None

    def fits(self, ranks: int) -> bool:
        """Whether a trial of so many ranks can ever start; not once too much is quarantined."""
        return bool(self.slots.usable_choices(ranks))

    def put(self, job: Hashable, ranks: int, now: float) -> None:
        """Take a trial in; it waits until `start` returns it."""
        self._account(now)
        self._waiting.append(_Waiting(job, ranks, self._arrivals))
        self._arrivals += 1

    def start(self, now: float) -> list[tuple[Hashable, Slot]]:
        """Return the trials that start now, each with its slot."""
        self._account(now)
        started: list[tuple[Hashable, Slot]] = []
        while (picked := self._pick(now)) is not None:
            waiting, places = picked
            slot = self.slots.take(places)
            self._waiting.remove(waiting)
            self._running[waiting.job] = _Run(slot, waiting.ranks, waiting.arrival, now)
            started.append((waiting.job, slot))
        return started

    def end(self, job: Hashable, now: float, problem: str | None = None) -> Slot:
        """Take a trial's slot back; with a problem it is quarantined.

        Raises:
            KeyError: it is not running.
        """
        self._account(now)
        run = self._running.pop(job)
        number, total = self._ended.get(run.ranks, (0, 0.0))
        self._ended[run.ranks] = (number + 1, total + now - run.since)
        self._longest = max(self._longest, now - run.since)
        if problem is None:
            self.slots.give_back(run.slot)
        else:
            self.slots.quarantine(run.slot, problem)
        return run.slot

    def leave(self, job: Hashable) -> bool:
        """Drop a trial that is still waiting; return whether it was."""
        before = len(self._waiting)
        self._waiting = [waiting for waiting in self._waiting if waiting.job != job]
        return len(self._waiting) < before

    def _pick(self, now: float) -> tuple[_Waiting, tuple[int, ...]] | None:
        if len(self._running) >= self._most or not self._waiting:
            return None
        self._reservation = self._kept() or self._new_reservation(now)
        for waiting in self._order():
            if (places := self._places(waiting, now)) is not None:
                return waiting, places
        return None

    def _order(self) -> list[_Waiting]:
        """Those that waited long enough, then the others: by arrival, or, where idle time is short, the widest first.

        `_waiting` is in order of arrival.
        """
        due = [waiting for waiting in self._waiting if self._is_due(waiting)]
        others = [waiting for waiting in self._waiting if not self._is_due(waiting)]
        return due + (others if self._affordable_idle > 0 else sorted(others, key=lambda each: -each.ranks))

    def _places(self, waiting: _Waiting, now: float) -> tuple[int, ...] | None:
        reserved = self._reservation
        if reserved is None or reserved.job == waiting.job:
            return self.slots.find(waiting.ranks)
        expected = self._expected(waiting.ranks)
        is_in_time = expected is not None and now + expected <= reserved.until
        return self.slots.find(waiting.ranks, None if is_in_time else self.slots.free - reserved.places)

    def _kept(self) -> _Reservation | None:
        """Return the reservation as long as it holds: its trial waits, and none of its places is quarantined."""
        found = self._reservation
        if found is None or found.places & self.slots.lost.keys():
            return None
        return found if any(waiting.job == found.job for waiting in self._waiting) else None

    def _new_reservation(self, now: float) -> _Reservation | None:
        """Make room for the first one in the order that has none, if it waited long enough or the idle time is small.

        A place that comes free stays idle until the last one of the reservation does.
        """
        for waiting in self._order():
            if self.slots.find(waiting.ranks) is not None:
                continue
            known = [self._estimate(choice, now) for choice in self.slots.usable_choices(waiting.ranks)]
            idle, until, places = min(known, default=(math.inf, now, ()))
            if idle <= self._affordable_idle or (self._is_due(waiting) and places):
                return _Reservation(waiting.job, frozenset(places), until)
            if not self._is_due(waiting):
                return None
        return None

    def _estimate(self, choice: Iterable[int], now: float) -> tuple[float, float, tuple[int, ...]]:
        """Return the idle time until all of these places are free, when that is, and the places."""
        free_at = {place: self._free_at(place, now) for place in choice}
        until = max(free_at.values())
        idle = math.inf if math.isinf(until) else sum(until - each for each in free_at.values())
        return idle, until, tuple(free_at)

    def _free_at(self, place: int, now: float) -> float:
        run = next((run for run in self._running.values() if place in run.slot.places), None)
        if run is None:
            return now
        expected = self._expected(run.ranks)
        return math.inf if expected is None else max(now, run.since + expected)

    def _expected(self, ranks: int) -> float | None:
        """Return how long a trial takes: the mean of those of as many ranks, else of all; None before any ended."""
        known = [self._ended[ranks]] if ranks in self._ended else list(self._ended.values())
        number = sum(each for each, _ in known)
        return sum(total for _, total in known) / number if number else None

    def _is_due(self, waiting: _Waiting) -> bool:
        limit = self._patience * self._longest * self.slots.num_usable
        return 0 < limit <= waiting.overtaken

    @property
    def _affordable_idle(self) -> float:
        return self._idle_share * (self._busy + self._idle) - self._idle

    def _account(self, now: float) -> None:
        """Add up what was used and what lay idle since the last call."""
        elapsed, self._at = now - self._at, now
        if math.isinf(elapsed) or elapsed <= 0:
            return
        used = sum(len(run.slot.places) for run in self._running.values())
        self._busy += elapsed * used
        if self._waiting:
            self._idle += elapsed * (self.slots.num_usable - used)
        for waiting in self._waiting:
            later = (len(run.slot.places) for run in self._running.values() if run.arrival > waiting.arrival)
            waiting.overtaken += elapsed * sum(later)
