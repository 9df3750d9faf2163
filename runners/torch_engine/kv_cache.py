"""The key-value cache: one slab of static shape, written by row and masked by length."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class StepGeometry:
    """Where the rows of one pass lie in the cache; computed once a pass, used by every layer."""

    positions: torch.Tensor
    """(S, Q) position of each row in its sequence."""
    cache_rows: torch.Tensor
    """(S * Q,) row of the flattened cache that each row's keys and values go to."""
    mask: torch.Tensor
    """(S, 1, Q, L) added to attention scores: 0 up to the row's own position, -inf after it."""


class KVCache:
    """Keys and values of all layers, (layers, sequences, positions, 2, local heads, head_dim).

    A sequence is rolled back by counting fewer of its positions: what lies beyond is masked and later overwritten. The
    slab starts as zeros, because a masked position still enters the product with weight 0, and 0 times NaN is NaN.
    """

    def __init__(self, slab: torch.Tensor) -> None:
        self.slab = slab

    @classmethod
    def allocate(
        cls,
        layers: int,
        sequences: int,
        positions: int,
        heads: int,
        head_dim: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> KVCache:
        """An empty cache; ``heads`` are those of this rank."""
        return cls(torch.zeros(layers, sequences, positions, 2, heads, head_dim, device=device, dtype=dtype))

    def sequences(self, first: int, count: int) -> KVCache:
        """A view of ``count`` neighbouring sequences."""
        return KVCache(self.slab[:, first : first + count])

    def geometry(self, starts: torch.Tensor, num_queries: int) -> StepGeometry:
        """Geometry of a pass that appends ``num_queries`` rows to each sequence at position ``starts`` (S,)."""
        capacity = self.slab.shape[2]
        positions = starts[:, None] + torch.arange(num_queries, device=starts.device)
        bases = torch.arange(starts.shape[0], device=starts.device)[:, None] * capacity
        is_future = torch.arange(capacity, device=starts.device) > positions[:, None, :, None]
        mask = torch.zeros(is_future.shape, device=starts.device, dtype=self.slab.dtype)
        return StepGeometry(positions, (bases + positions).flatten(), mask.masked_fill_(is_future, float("-inf")))

    def append(
        self, layer: int, geometry: StepGeometry, keys_values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write ``keys_values`` (S * Q, 2 * local width); returns all keys and values, each (S, heads, L, head_dim)."""
        slab = self.slab[layer]
        slab.view(-1, keys_values.shape[1]).index_copy_(0, geometry.cache_rows, keys_values)
        return slab[:, :, 0].transpose(1, 2), slab[:, :, 1].transpose(1, 2)
