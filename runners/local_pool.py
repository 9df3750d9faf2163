"""A Ray cluster for what needs the node's hardware, and a thread of this process for what only asks the engine.

The warm process that resolves arguments must outlive a question. Ray ends idle workers as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from runners.contract import Rung, RunRecord, TrialRequest
from runners.ray_nodes import RayNode
from runners.ray_pool import Lost, RayPool, Running
from runners.registry import make_runner
from runners.resolve_rung import close_resolvers


class LadderPool(RayPool):
    """A pool whose batches of the resolve rung run in a thread here; every other batch is a Ray task."""

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus: int | None = None,
        lost: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(address, num_cpus=num_cpus, lost=lost)
        self._executor: ThreadPoolExecutor | None = None
        self._asked: dict[int, Future[list[RunRecord]]] = {}

    def submit(self, requests: Sequence[TrialRequest], node: RayNode | None = None) -> Running:
        """Start a batch of requests of one rung and return at once."""
        if requests[0].rung is not Rung.RESOLVE:
            return super().submit(requests) if node is None else super().submit(requests, node)
        if self._executor is None:  # not begun, or stopped since: Ray died and was started again
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="resolve")
        future = self._executor.submit(_resolve, tuple(requests))
        running = Running(future, tuple(requests))
        self._asked[id(future)] = future
        return running

    def wait(self, running: Sequence[Running], timeout_s: float) -> list[Running]:
        """Return those that have ended, after at most `timeout_s`."""
        asked = [task for task in running if id(task.reference) in self._asked]
        if not asked:
            return super().wait(running, timeout_s)
        wait([task.reference for task in asked], timeout=timeout_s)
        ended = [task for task in asked if task.reference.done()]
        others = [task for task in running if task not in asked]
        return ended + (super().wait(others, 0.0) if others else [])

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Return the records of an ended batch, in the order of its requests, or how it was lost."""
        future = self._asked.pop(id(task.reference), None)
        if future is None:
            return super().result(task)
        error = future.exception()
        return future.result() if error is None else Lost(f"the runner failed: {error}")

    def cancel(self, task: Running, timeout_s: float) -> None:
        """End a batch; a question that is being answered is waited for, since it is short."""
        future = self._asked.pop(id(task.reference), None)
        if future is None:
            super().cancel(task, timeout_s)
        elif not future.cancel():
            wait([future], timeout=timeout_s)

    def stop(self) -> None:
        """End the warm processes and Ray."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        self._asked.clear()
        close_resolvers()
        super().stop()


def _resolve(requests: tuple[TrialRequest, ...]) -> list[RunRecord]:
    runner = make_runner(requests[0].settings.engine)
    return [runner.run(request) for request in requests]
