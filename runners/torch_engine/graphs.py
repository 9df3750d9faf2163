"""CUDA graphs: record a whole decoding step once, replay it with a single launch.

Nothing is emulated without CUDA: the attempt is made, and torch's own error is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

WARM_UP_RUNS = 2
"""Eager runs before a capture: they set up workspaces and communicators, which a capture must not."""


class CapturedCall:
    """A function recorded in a CUDA graph. Its inputs are the tensors that it read when it was captured.

    Args:
        run: called a few times eagerly, then once under capture; it returns one tensor.
        pool: memory pool of an earlier capture, shared because captured steps never run at the same time.
        around: makes what has to be entered around the capture, but not around the eager runs before it.
    """

    def __init__(
        self,
        run: Callable[[], torch.Tensor],
        pool: Any = None,
        around: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.graph = torch.cuda.CUDAGraph()
        self._warm_up(run)
        # thread_local: NCCL's watchdog thread queries events, which a capture in global mode forbids to every thread.
        with around(), torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            self.output = run()
        if not self.output.is_cuda:
            raise RuntimeError(f"the CUDA graph holds no work: the step ran on {self.output.device}")

    @staticmethod
    def _warm_up(run: Callable[[], torch.Tensor]) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_RUNS):
                run()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()

    @property
    def pool(self) -> Any:
        """The memory pool, for further captures."""
        return self.graph.pool()

    def replay(self) -> torch.Tensor:
        """Run the recorded work; returns its output tensor, which the next replay overwrites."""
        self.graph.replay()
        return self.output

    def release(self) -> None:
        """Free the graph; before its communicator is destroyed, which otherwise waits for it for ever (NCCL 2.2x)."""
        self.graph.reset()
