"""The trials of this machine, each on a slot of its own: what has no slot yet waits here, the rest are Ray's tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from runners.contract import Rung, RunRecord, TrialRequest
from runners.engine_dialects.node import ranks_of
from runners.gpu_memory import GpuMemoryGuard
from runners.local_pool import LadderPool
from runners.ray_nodes import RayNode
from runners.ray_pool import Lost, PoolError, Running
from runners.slot import Slot
from runners.slot_binding import slot_environment
from runners.slot_queue import SlotQueue
from runners.slot_return import problem_after_loss, problem_of_records

AHEAD = 2
"""Trials of several widths that may wait for a slot: what is decided earlier is decided with fewer results."""
NO_SLOT = "no slot for so many ranks is left on this node"


@dataclass(eq=False)
class _Ticket:
    """A batch that was handed in, and, once it has a slot, the task that works on it."""

    requests: tuple[TrialRequest, ...]
    ranks: int
    task: Running | None = None
    guard: GpuMemoryGuard | None = None


class SlotPool(LadderPool):
    """A local Ray whose trials share this machine.

    Args:
        queue: The machine's slots; nobody else may hand them out.
        widths: Numbers of ranks that the trials of the study may have.
        num_cpus: What Ray is told to have.
        lost: See `RayPool`.
        clock: The time that the queue goes by.
    """

    def __init__(
        self,
        queue: SlotQueue,
        widths: Collection[int],
        *,
        num_cpus: int | None = None,
        lost: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(num_cpus=num_cpus, lost=lost)
        self._queue, self._widths, self._clock = queue, sorted(set(widths)), clock
        self._tickets: list[_Ticket] = []

    def has_room(self, num_in_flight: int, most: int) -> bool:
        """Return whether one more trial may be handed in."""
        if num_in_flight - self._queue.num_waiting >= most:
            return False
        if len({self._queue.slots.layout.size(ranks) for ranks in self._widths}) > 1:
            return self._queue.num_waiting < AHEAD
        return self._queue.has_room(self._widths[0])

    def goes_on_without_a_slot(self) -> bool:
        """Return whether every trial that the study may ask for still finds a slot, once one was quarantined."""
        return all(map(self._queue.fits, self._widths))

    def submit(self, requests: Sequence[TrialRequest], node: RayNode | None = None) -> Running:
        """Take a batch in; it starts when there is a slot for it on the only node."""
        if requests[0].rung is Rung.RESOLVE:  # a question takes no slot
            return super().submit(requests)
        ranks = max(ranks_of(request.assignment, request.settings) for request in requests)
        ticket = _Ticket(tuple(requests), ranks)
        self._tickets.append(ticket)
        self._queue.put(ticket, ranks, self._clock())
        self._start()
        return Running(ticket, ticket.requests)

    def wait(self, running: Sequence[Running], timeout_s: float) -> list[Running]:
        """Return those that have ended, after at most `timeout_s`. One that no slot is left for has ended too."""
        self._start()
        ours = [each for each in running if isinstance(each.reference, _Ticket)]
        hopeless = [each for each in ours if each.reference.task is None and not self._queue.fits(each.reference.ranks)]
        if hopeless:
            return hopeless
        tasks = {id(each.reference.task): each for each in ours if each.reference.task is not None}
        others = [each for each in running if not isinstance(each.reference, _Ticket)]
        inner = [each.reference.task for each in tasks.values()] + others
        if not inner:
            time.sleep(timeout_s)
            return []
        return [tasks.get(id(each), each) for each in super().wait(inner, timeout_s)]

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Return the records of an ended batch, or how it was lost, and take its slot back, if it is clean."""
        ticket = task.reference
        if not isinstance(ticket, _Ticket):
            return super().result(task)
        if ticket.task is None:
            self._drop(ticket)
            return Lost(NO_SLOT)
        found = super().result(ticket.task)
        self._take_back(ticket, found)
        with suppress(PoolError):  # whoever waits next meets it; this result is good
            self._start()
        return found

    def cancel(self, task: Running, timeout_s: float) -> None:
        """End a batch, and take its slot back."""
        ticket = task.reference
        if not isinstance(ticket, _Ticket):
            super().cancel(task, timeout_s)
        elif ticket.task is None:
            self._drop(ticket)
        else:
            try:
                super().cancel(ticket.task, timeout_s)
            finally:
                self._take_back(ticket, None)

    def restart(self) -> None:
        """Put a new local Ray in the place of one that died; the slots of what ran there are looked at.

        Raises:
            PoolError: when Ray does not come up again.
        """
        for ticket in list(self._tickets):
            if ticket.task is None:
                self._drop(ticket)
            else:
                self._take_back(ticket, None)
        super().restart()

    def _start(self) -> None:
        begun = [(ticket, slot) for ticket, slot in self._queue.start(self._clock()) if isinstance(ticket, _Ticket)]
        try:
            for ticket, slot in begun:
                requests = [_placed(request, slot) for request in ticket.requests]
                if slot.gpus:
                    ticket.guard = GpuMemoryGuard(requests[0].environment)
                ticket.task = super().submit(requests)
        except PoolError:  # those that Ray did not take wait on, until it is replaced
            for ticket, _ in begun:
                if ticket.task is None:
                    self._queue.end(ticket, self._clock())
                    self._queue.put(ticket, ticket.ranks, self._clock())
            raise

    def _take_back(self, ticket: _Ticket, found: list[RunRecord] | Lost | None) -> None:
        if isinstance(found, list):
            problem = problem_of_records(found)
        else:
            problem = problem_after_loss(ticket.requests, ticket.guard)
        self._queue.end(ticket, self._clock(), problem)
        self._tickets.remove(ticket)

    def _drop(self, ticket: _Ticket) -> None:
        self._queue.leave(ticket)
        self._tickets.remove(ticket)


def _placed(request: TrialRequest, slot: Slot) -> TrialRequest:
    """Return the request with its slot, and the slot's GPUs in the environment."""
    return request.model_copy(update={"slot": slot, "environment": slot_environment(slot, request.environment)})
