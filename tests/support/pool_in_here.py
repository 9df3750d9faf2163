"""A pool for the loop's tests that needs no Ray: what is submitted runs at once, in this process."""

from __future__ import annotations

from collections.abc import Sequence

from runners import Runner, RunRecord, TrialRequest
from runners.ray_pool import Lost, Running


class PoolInHere:
    """Runs what is submitted at once, in this process."""

    dead_daemon: str | None = None

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.num_submitted = 0

    def has_room(self, num_in_flight: int, most: int) -> bool:
        """One after the other, or as many as are wanted."""
        return num_in_flight < most

    def goes_on_without_a_slot(self) -> bool:
        """There is one slot."""
        return False

    def submit(self, requests: Sequence[TrialRequest]) -> Running:
        """Count and hand on."""
        self.num_submitted += 1
        return Running(None, tuple(requests))  # type: ignore[arg-type]

    def wait(self, running: Sequence[Running], timeout_s: float) -> list[Running]:
        """Return everything: it is over already."""
        return list(running)

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Run; a runner that raises is a lost task, as in a Ray worker."""
        try:
            return [self._runner.run(request) for request in task.requests]
        except OSError as error:
            return Lost(f"the runner failed: {error}")

    def cancel(self, task: Running, timeout_s: float) -> None:
        """Nothing: it is over already."""
