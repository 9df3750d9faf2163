"""Synthetic weights of one rank: random matrices, with the associations stored in a few of their rows and columns.

Each rank draws only what it holds, block by block from a seed of (layer, matrix, block), so that the model does not
depend on whether experts are split over ranks or owned whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .associations import LOOK_BACK, Associations
from .config import EngineConfig

MEMORY_SHARE = 1 / 6
"""Share of a GPU's memory that ``expert_hidden=0`` fills with weights."""

# Strengths. Signals are about 1 in the residual stream, whose norm is about 2; see the associations for what they are.
POSITION_SCORE = 40.0
"""Attention score of the position looked back to; others score near 0."""
QUERY_NOISE = 0.3
ROUTER_SIGNAL = 8.0
ROUTER_NOISE = 0.5
GATE_SIGNAL = 4.0
CORRECTION = 5.0
"""How much stronger the last layer's memory is than the first's."""
NOISE_NORM = 0.8
"""Norm of what the random parts of all layers add to the residual stream together."""
HEAD_SCALE = 8.0

_EXPANDED_GATE = 4.4
"""silu(g) * g at the activation that GATE_SIGNAL produces in the first layer: the memory's columns are divided by it.
"""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer of one rank. H: hidden; W: local heads * head_dim; E, F: experts and their inner width on this rank."""

    query_key_value: torch.Tensor
    """(3 * W, H)"""
    attention_output: torch.Tensor
    """(H, W)"""
    router: torch.Tensor
    """(all experts, H)"""
    expert_input: torch.Tensor
    """(E * 2 * F, H): for each expert its gate rows, then its up rows."""
    expert_output: torch.Tensor
    """(H, E * F)"""


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of one rank."""

    embedding: torch.Tensor
    """(vocab, H)"""
    positions: torch.Tensor
    """(cache positions, 3 * W): added to queries, keys and (zero) values; it makes heads look LOOK_BACK positions back.
    """
    layers: list[LayerWeights]
    head: torch.Tensor
    """(vocab / tp, H): this rank's part of the vocabulary."""

    @property
    def bytes_per_layer(self) -> int:
        """Bytes that one pass through one layer reads."""
        layer = self.layers[0]
        matrices = (
            layer.query_key_value,
            layer.attention_output,
            layer.router,
            layer.expert_input,
            layer.expert_output,
        )
        return sum(matrix.nbytes for matrix in matrices)

    @property
    def total_bytes(self) -> int:
        """Bytes of all weights of this rank."""
        return (
            self.bytes_per_layer * len(self.layers) + self.embedding.nbytes + self.positions.nbytes + self.head.nbytes
        )


def expert_hidden_from_memory(config: EngineConfig, memory_bytes: int, bytes_per_element: int) -> int:
    """Expert width with which one rank's weights fill ``MEMORY_SHARE`` of ``memory_bytes``; a multiple of 64 * tp."""
    size = config.size
    attention = 4 * size.hidden * size.heads * size.head_dim
    budget = memory_bytes * MEMORY_SHARE / bytes_per_element * config.tp / size.layers - attention
    quantum = 64 * config.tp
    return max(1, int(budget / (3 * size.hidden * size.experts) / quantum)) * quantum


def build_weights(config: EngineConfig, rank: int, device: torch.device, dtype: torch.dtype) -> Weights:
    """Draw the weights of one rank. ``config.size.expert_hidden`` must be set."""
    return _Builder(config, rank, device, dtype).build()


class _Builder:
    def __init__(self, config: EngineConfig, rank: int, device: torch.device, dtype: torch.dtype) -> None:
        self.config, self.size, self.rank = config, config.size, rank
        self.device, self.dtype = device, dtype
        self.known = Associations.draw(config)
        self.local_heads = config.size.heads // config.tp
        self.width = self.local_heads * config.size.head_dim
        self.generator = torch.Generator(device=device)

    def build(self) -> Weights:
        side, known = self.size.vocab_side, self.known
        embedding = (known.token_a[:, None] + known.token_b[None, :]).flatten(0, 1)
        head = (known.next_a[:, None] + known.next_b[None, :]).flatten(0, 1)
        part = side * side // self.config.tp
        head = head[self.rank * part : (self.rank + 1) * part] * (HEAD_SCALE / math.sqrt(self.size.hidden))
        return Weights(
            embedding=self._place(embedding),
            positions=self._positions(),
            layers=[self._layer(layer) for layer in range(self.size.layers)],
            head=self._place(head),
        )

    def _layer(self, layer: int) -> LayerWeights:
        query_key_value, attention_output = self._attention(layer)
        expert_input, expert_output = self._experts(layer)
        return LayerWeights(query_key_value, attention_output, self._router(layer), expert_input, expert_output)

    def _attention(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, width = self.size.hidden, self.width
        inputs = self._normal((3 * width, hidden), 1 / math.sqrt(hidden), layer, "attention_in", self.rank)
        inputs[: 2 * width] *= QUERY_NOISE
        outputs = self._normal((hidden, width), self._noise_std(width), layer, "attention_out", self.rank)
        if layer == 0:
            self._store_b(inputs[2 * width :], outputs)
        return inputs, outputs

    def _store_b(self, values: torch.Tensor, outputs: torch.Tensor) -> None:
        """Second halves: class b lives in head ``b mod heads``; the norm of the embedding is sqrt(2)."""
        classes = [b for b in range(self.size.vocab_side) if b % self.size.heads // self.local_heads == self.rank]
        slots = [b % self.size.heads % self.local_heads * self.size.head_dim + b // self.size.heads for b in classes]
        successors = [self.known.successor_b[b] for b in classes]
        values[slots] = self._place(self.known.token_b[classes] * math.sqrt(2 / self.size.hidden))
        outputs[:, slots] = self._place(self.known.next_b[successors].T)

    def _router(self, layer: int) -> torch.Tensor:
        router = self._normal(
            (self.size.experts, self.size.hidden), ROUTER_NOISE / math.sqrt(self.size.hidden), layer, "router", 0
        )
        for expert in range(self.size.experts):
            known = self.known.token_a[expert :: self.size.experts].sum(0)
            router[expert] += self._place(known * (ROUTER_SIGNAL / math.sqrt(self.size.hidden)))
        return router

    def _experts(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.config.expert_parallel:
            num_owned = self.size.experts // self.config.tp
            owned, blocks = range(self.rank * num_owned, (self.rank + 1) * num_owned), range(self.config.tp)
        else:
            owned, blocks = range(self.size.experts), range(self.rank, self.rank + 1)
        block_width = self.size.expert_hidden // self.config.tp
        hidden, inner = self.size.hidden, block_width * len(blocks)
        inputs = torch.empty(len(owned), 2, inner, hidden, device=self.device, dtype=self.dtype)
        outputs = torch.empty(hidden, len(owned), inner, device=self.device, dtype=self.dtype)
        for place, expert in enumerate(owned):
            for start, block in zip(range(0, inner, block_width), blocks, strict=True):
                self._fill_block(
                    layer, expert, block, inputs[place], outputs[:, place], slice(start, start + block_width)
                )
        return inputs.view(-1, hidden), outputs.view(hidden, -1)

    def _fill_block(
        self, layer: int, expert: int, block: int, inputs: torch.Tensor, outputs: torch.Tensor, columns: slice
    ) -> None:
        """One expert's share of one rank: noise, then the slots of the memory that fall into it."""
        hidden, width, index = self.size.hidden, columns.stop - columns.start, expert * self.config.tp + block
        inputs[:, columns] = self._normal((2, width, hidden), 1 / math.sqrt(hidden), layer, "expert_in", index)
        std = 2.5 * self._noise_std(self.size.expert_hidden)
        outputs[:, columns] = self._normal((hidden, width), std, layer, "expert_out", index)
        for slot, a in self._memory_slots(expert):
            is_stored = layer == 0 or (layer == self.size.layers - 1 and a in self.known.misled)
            if is_stored and slot // width == block:
                self._store_a(layer, a, inputs, outputs, columns.start + slot % width)

    def _memory_slots(self, expert: int) -> list[tuple[int, int]]:
        """(slot, class) of the first halves that an expert knows, spread over its width so that every rank holds
        some."""
        classes = list(range(expert, self.size.vocab_side, self.size.experts))
        return [(index * self.size.expert_hidden // len(classes), a) for index, a in enumerate(classes)]

    def _store_a(self, layer: int, a: int, inputs: torch.Tensor, outputs: torch.Tensor, column: int) -> None:
        inputs[:, column] = self._place(self.known.token_a[a] * (GATE_SIGNAL / math.sqrt(self.size.hidden)))
        if layer == 0:
            outputs[:, column] = self._place(self.known.next_a[self.known.early_successor_a(a)] / _EXPANDED_GATE)
        else:
            outputs[:, column] = self._place(
                self.known.next_a[self.known.successor_a[a]] * (CORRECTION / _EXPANDED_GATE)
            )

    def _positions(self) -> torch.Tensor:
        """Random codes of +-1: a key carries its position's code, a query that of the position LOOK_BACK before it."""
        capacity = self.config.cache_positions
        generator = torch.Generator().manual_seed(self.config.seed)
        signs = torch.randint(0, 2, (capacity, self.size.heads * self.size.head_dim), generator=generator) * 2.0 - 1.0
        codes = signs[:, self.rank * self.width : (self.rank + 1) * self.width]
        codes = codes * math.sqrt(POSITION_SCORE / math.sqrt(self.size.head_dim))
        looked_at = (torch.arange(capacity) - LOOK_BACK).clamp(min=0)
        return self._place(torch.cat([codes[looked_at], codes, torch.zeros_like(codes)], dim=1))

    def _noise_std(self, inner: int) -> float:
        """Standard deviation of an output matrix such that all sub-layers together add NOISE_NORM."""
        return NOISE_NORM / math.sqrt(2 * self.size.layers) / math.sqrt(self.size.hidden * inner)

    def _normal(self, shape: tuple[int, ...], std: float, layer: int, matrix: str, block: int) -> torch.Tensor:
        kinds = ("attention_in", "attention_out", "router", "expert_in", "expert_out")
        self.generator.manual_seed(
            ((self.config.seed * 1009 + layer) * len(kinds) + kinds.index(matrix)) * 100_003 + block
        )
        return torch.empty(shape, device=self.device, dtype=self.dtype).normal_(0, std, generator=self.generator)

    def _place(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.device, self.dtype)
