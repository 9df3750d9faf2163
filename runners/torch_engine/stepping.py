"""Run prefill and decoding steps for a fixed set of cache slots, eagerly or from CUDA graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .config import EngineConfig
from .graphs import CapturedCall
from .kv_cache import KVCache
from .model import Decoder
from .speculation import Verdict, judge, pack, speculative_step


@dataclass(frozen=True, slots=True)
class _CapturedStep:
    inputs: torch.Tensor
    call: CapturedCall


class Stepper:
    """Decoding steps of one rank. Slot i of a batch is sequence i of the cache."""

    def __init__(self, config: EngineConfig, decoder: Decoder, cache: KVCache) -> None:
        self.config = config
        self.decoder = decoder
        self.cache = cache
        self.device = decoder.collectives.device
        self._captured: dict[int, _CapturedStep] = {}

    @property
    def captured_batch_sizes(self) -> list[int]:
        """Batch sizes that are replayed from a CUDA graph."""
        return sorted(self._captured)

    def capture(self, batch_sizes: Sequence[int]) -> None:
        """Capture one whole step (draft and verify) for each batch size, on all ranks in the same order.

        The largest comes first, so that the smaller ones find their memory in the shared pool.
        """
        pool = None
        for batch_size in sorted(batch_sizes, reverse=True):
            inputs = torch.zeros(2, batch_size, dtype=torch.long, device=self.device)
            call = CapturedCall(lambda inputs=inputs: self._run(inputs), pool)  # type: ignore[misc]
            pool = call.pool
            self._captured[batch_size] = _CapturedStep(inputs, call)

    def release(self) -> None:
        """Free the captured graphs."""
        for captured in self._captured.values():
            captured.call.release()
        self._captured.clear()

    def prefill(self, slot: int, prompt: Sequence[int]) -> Verdict:
        """Put a prompt into an empty slot; the verdict holds the first generated token."""
        tokens = torch.tensor([prompt], dtype=torch.long).to(self.device)
        starts = torch.zeros(1, dtype=torch.long, device=self.device)
        logits = self.decoder.logits(tokens, starts, self.cache.sequences(slot, 1), self.config.size.layers)
        return judge(pack(logits[:, -1:], []).tolist()[0], 0)

    def step(self, tokens: Sequence[int], lengths: Sequence[int]) -> list[Verdict]:
        """Advance slots 0, 1, ...: ``tokens`` are the last ones, not yet in the cache; ``lengths`` the cached
        positions.

        Waits for the result (reading it back is the only synchronisation of a step).
        """
        missing = self.config.padded_batch(len(tokens)) - len(tokens)
        inputs = torch.tensor([[*tokens, *[0] * missing], [*lengths, *[0] * missing]], dtype=torch.long)
        packed = self._replay_or_run(inputs).tolist()
        return [judge(row, self.config.draft_length) for row in packed[: len(tokens)]]

    def _replay_or_run(self, inputs: torch.Tensor) -> torch.Tensor:
        captured = self._captured.get(inputs.shape[1])
        if captured is None:
            return self._run(inputs.to(self.device))
        captured.inputs.copy_(inputs)
        return captured.call.replay()

    def _run(self, inputs: torch.Tensor) -> torch.Tensor:
        cache = self.cache.sequences(0, inputs.shape[1])
        return speculative_step(self.decoder, self.config.draft_length, inputs[0], inputs[1], cache)

    def run_eager(self, batch_size: int) -> None:
        """One step on empty sequences without a graph, whatever was captured: to count its exchanges."""
        self._run(torch.zeros(2, batch_size, dtype=torch.long, device=self.device))
