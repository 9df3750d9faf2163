"""End a load early, on all ranks at the same request, when it is known to be clearly slower than asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from runners.early_stop import EarlyStop
from runners.measured import StopRule

from .config import EngineConfig
from .serving import Request


class LoadWatch:
    """The rule of a launch. Rank 0 decides by its clock and the others follow: all ranks must take the same steps."""

    def __init__(self, config: EngineConfig, rank: int, device: torch.device) -> None:
        workload = config.workload
        requests = {concurrency: workload.requests_at(concurrency) for concurrency in workload.order}
        rule = StopRule(below=workload.stop_below, hopes=dict(workload.hopes))
        self._stop = EarlyStop(rule, requests) if rank == 0 else None
        self._device = device
        self.is_over = False

    def take(self, concurrency: int, finished: Sequence[Request]) -> bool:
        """Take in requests that have just been served whole; return whether the load ends now.

        Every rank calls this at the same step with the same requests.
        """
        if self._stop is not None:
            for request in finished:
                self._stop.served(concurrency, len(request.output), request.finished - request.submitted)
        decided = torch.tensor([int(self._stop is not None and self._stop.stopped is not None)], device=self._device)
        dist.broadcast(decided, src=0)
        self.is_over = bool(decided.item())
        return self.is_over

    @property
    def evidence(self) -> dict[str, Any] | None:
        """Why the load ended early; None where it did not, and on every rank but the first."""
        stopped = self._stop.stopped if self._stop is not None else None
        return None if stopped is None else stopped.model_dump(mode="json")


def watch_of(config: EngineConfig, rank: int, device: torch.device) -> LoadWatch | None:
    """The watch that the flags ask for, if they do."""
    return LoadWatch(config, rank, device) if config.workload.stop_below else None
