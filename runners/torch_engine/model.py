"""The decoder: embedding, layers of attention and experts, and a head split over the vocabulary.

Shapes: S sequences, Q query rows each, R = S * Q rows in all, H hidden, V vocabulary, L cache positions.

Every rank holds some heads and a part (or some) of the experts; two sums over ranks a layer put them together. All
experts on a rank are computed for every row, with weight 0 where they were not chosen, so that shapes stay static: a
decoding step reads every weight of the rank once. The head's logits are gathered from all ranks, so that every rank
decides from the same bits and none can ever take another way than its peers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation uses

from .collectives import Collectives
from .config import EngineConfig
from .expert_parallel import exchange_with_experts
from .kv_cache import KVCache, StepGeometry
from .weights import LayerWeights, Weights

CPU_TILE_ROWS = 8
"""Rows of every matrix product on CPUs. A product of 1 row and one of 5 rows differ in their last bits, a row in a tile
of 8 has the same bits wherever it lies in it (MKL, torch 2.13): tokens then cannot depend on how many rows go along."""


NORM_EPSILON = 1e-6
"""Far below the mean square of the residual stream (about 4 / H); torch's default for bfloat16, 0.008, is far above."""


class Decoder:
    """The model of one rank."""

    def __init__(self, config: EngineConfig, weights: Weights, collectives: Collectives) -> None:
        self.size = config.size
        self.expert_parallel = config.expert_parallel
        self.weights = weights
        self.collectives = collectives
        self.local_heads = config.size.heads // config.tp
        self.tile_rows = CPU_TILE_ROWS if collectives.device.type == "cpu" else None

    def logits(self, tokens: torch.Tensor, starts: torch.Tensor, cache: KVCache, layers: int) -> torch.Tensor:
        """Logits (S, Q, V), float32, of ``tokens`` (S, Q) at positions from ``starts`` (S,), after the first ``layers``
        layers.

        Keys and values of the rows are written to ``cache``, which holds exactly S sequences.
        """
        geometry = cache.geometry(starts, tokens.shape[1])
        position_rows = self.weights.positions[geometry.positions.flatten()]
        stream = self.weights.embedding[tokens.flatten()]
        for index, layer in enumerate(self.weights.layers[:layers]):
            attended = self._attention(index, layer, self._norm(stream), position_rows, geometry, cache)
            stream = stream + self.collectives.all_reduce(attended)
            stream = stream + self._experts(layer, self._norm(stream))
        return self._head(self._norm(stream)).view(*tokens.shape, -1)

    def _attention(
        self,
        index: int,
        layer: LayerWeights,
        rows: torch.Tensor,
        position_rows: torch.Tensor,
        geometry: StepGeometry,
        cache: KVCache,
    ) -> torch.Tensor:
        """This rank's summand (R, H) of attention over the cache."""
        projected = self._linear(rows, layer.query_key_value, position_rows)
        width = layer.attention_output.shape[1]
        keys, values = cache.append(index, geometry, projected[:, width:])
        sequences, num_queries = geometry.positions.shape
        queries = projected[:, :width].view(sequences, num_queries, self.local_heads, -1).transpose(1, 2)
        # On CPUs one query at a time: attention then has one shape, whatever the number of rows.
        step = num_queries if self.tile_rows is None else 1
        parts = [
            F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
            for query, mask in zip(
                torch.split(queries, step, dim=2), torch.split(geometry.mask, step, dim=2), strict=True
            )
        ]
        attended = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
        return self._linear(attended.transpose(1, 2).reshape(rows.shape[0], width), layer.attention_output)

    def _experts(self, layer: LayerWeights, rows: torch.Tensor) -> torch.Tensor:
        """The weighted sum (R, H) of the chosen experts of all ranks."""
        routing = self._routing(layer, rows)

        def local_experts(rows: torch.Tensor, routing: torch.Tensor) -> torch.Tensor:
            num_rows, num_experts = routing.shape
            gate, up = self._linear(rows, layer.expert_input).view(num_rows, num_experts, 2, -1).unbind(2)
            activated = F.silu(gate) * up * routing[:, :, None]
            # One product over all experts adds them up.
            return self._linear(activated.flatten(1), layer.expert_output)

        if self.expert_parallel:
            return exchange_with_experts(self.collectives, local_experts, rows, routing)
        return self.collectives.all_reduce(local_experts(rows, routing))

    def _routing(self, layer: LayerWeights, rows: torch.Tensor) -> torch.Tensor:
        """Routing weights (R, all experts): a softmax over the chosen experts, 0 elsewhere."""
        scores = self._linear(rows, layer.router).float()
        # Unsorted: on a GPU, sorting the few values is a kernel of its own.
        least_chosen = scores.topk(self.size.experts_per_token, sorted=False).values.amin(-1, keepdim=True)
        return scores.masked_fill(scores < least_chosen, float("-inf")).softmax(-1).to(rows.dtype)

    def _head(self, rows: torch.Tensor) -> torch.Tensor:
        """Logits (R, V), gathered from the ranks' parts of the vocabulary."""
        parts = self.collectives.all_gather(self._linear(rows, self.weights.head).float())
        return parts.transpose(0, 1).flatten(1)

    def _norm(self, stream: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(stream, (self.size.hidden,), eps=NORM_EPSILON)

    def _linear(self, rows: torch.Tensor, weight: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """``rows @ weight.T + addend``, in tiles of a fixed number of rows on CPUs."""
        if self.tile_rows is None:
            return F.linear(rows, weight) if addend is None else torch.addmm(addend, rows, weight.T)
        product = in_tiles(lambda tile: F.linear(tile, weight), rows, self.tile_rows)
        return product if addend is None else product + addend


def in_tiles(function: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor, tile_rows: int) -> torch.Tensor:
    """``function`` of ``rows`` (R, ...), called on exactly ``tile_rows`` rows at a time; the last tile is padded with
    zeros."""
    num_rows = rows.shape[0]
    missing = -num_rows % tile_rows
    padded = F.pad(rows, (0, 0, 0, missing)) if missing else rows
    tiles = [function(tile) for tile in torch.split(padded, tile_rows)]
    return (tiles[0] if len(tiles) == 1 else torch.cat(tiles))[:num_rows]
