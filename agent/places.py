"""Where the trials of a study run: on this machine alone, or on the nodes of somebody's cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from agent.fleet import Fleet
from runners import RunRecord, TrialRequest
from runners.ray_nodes import RayNode
from runners.ray_pool import Lost, RayPool, Running


@dataclass(frozen=True, slots=True)
class Places:
    """Room for trials, and what becomes of them there."""

    pool: RayPool
    slots: int
    """Trials (or batches of probes) at the same time on one node."""
    fleet: Fleet | None = None
    """The nodes of a cluster; None where the only node is this one."""

    def has_room(self, in_flight: Sequence[Running]) -> bool:
        """Return whether one more may start beside those that run."""
        if self.fleet is None:
            return self.pool.has_room(len(in_flight), self.slots)
        return len(in_flight) < self.fleet.capacity and self.fleet.free_node(in_flight) is not None

    def submit(self, requests: Sequence[TrialRequest], in_flight: Sequence[Running]) -> Running:
        """Start a batch where most room is."""
        node = None if self.fleet is None else self.fleet.free_node(in_flight)
        return self.pool.submit(requests) if node is None else self.pool.submit(requests, node)

    def wait(self, in_flight: Sequence[Running], timeout_s: float) -> list[Running]:
        """Return those that have ended, after at most `timeout_s`; with nothing in flight, wait for a node."""
        if not in_flight:
            time.sleep(timeout_s)
            return []
        return self.pool.wait(in_flight, timeout_s)

    def result(self, running: Running, *, has_ended: bool) -> list[RunRecord] | Lost | None:
        """Return what came of a task, or None while it runs. One whose node left is lost, whatever Ray says of it:
        of a node that was cut off, Ray may say nothing for minutes."""
        found = self.pool.result(running) if has_ended else None
        if self.fleet is None or running.node is None or isinstance(found, list):
            return found
        if isinstance(found, Lost):
            self.fleet.look(at_once=True)
        if not self.fleet.has_lost(running.node):
            return found
        if found is None:
            self.pool.forget(running)
        return Lost(f"node {running.node.host} left the cluster", is_node_lost=True)

    def set_aside(self, node: RayNode | None, why: str) -> bool:
        """Launch nothing more on a node; return whether the study may go on without it."""
        if self.fleet is None or node is None:
            return False
        self.fleet.quarantine(node, why)
        return True

    def look(self, *, is_idle: bool) -> str | None:
        """See who joined and who left; return why nothing can be launched any more, or None."""
        if self.fleet is None:
            return None
        self.fleet.look()
        return self.fleet.problem() if is_idle else None

    def restart(self) -> None:
        """Put a new Ray in the place of one that died, or connect to it again.

        Raises:
            PoolError: it does not come up.
            NodeUnusableError: none of its nodes may take trials.
        """
        self.pool.restart()
        if self.fleet is not None:
            self.fleet.begin_again()
            self.fleet.settle()
