"""What the synthetic model knows: a successor for every token, stored where a real model would store it.

A token id is a pair (a, b) of classes: ``a * side + b``. The next token is the pair

    (successor_a[a of the last token], successor_b[b of the token LOOK_BACK positions before it])

The first half is a memory in the experts (the slot that knows class a lies in expert ``a mod experts``, to which the
router sends it), the second a memory in the attention heads, which look exactly ``LOOK_BACK`` positions back. So the
tokens depend on the prompt, the cache, the routing and every rank's share of every exchange, and yet the best logit
stands far above the second: signals lie in orthogonal directions, while the random rest of the weights contributes
noise that is small against them. That margin is what makes greedy decoding lossless on GPUs, where a matrix product
rounds differently for other shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .config import EngineConfig

LOOK_BACK = 2
"""Distance of the token that decides the second half of the next one, in positions."""


@dataclass(frozen=True, slots=True)
class Associations:
    """Directions of the residual stream and the successors that the memories store. All tensors are float32 on the
    CPU."""

    token_a: torch.Tensor
    """(side, H) direction that the embedding of class a of the first half writes."""
    token_b: torch.Tensor
    next_a: torch.Tensor
    """(side, H) direction that the head reads as "the next first half is a"."""
    next_b: torch.Tensor
    successor_a: list[int]
    """Successor of each class of the first half: one cycle through all of them."""
    successor_b: list[int]
    misled: frozenset[int]
    """Classes of the first half whose early memory is wrong, and is corrected in the last layer only."""

    @classmethod
    def draw(cls, config: EngineConfig) -> Associations:
        """The associations of a configuration: a function of seed, vocabulary, width and draft agreement."""
        side = config.size.vocab_side
        generator = torch.Generator().manual_seed(config.seed)
        random = torch.randn(config.size.hidden, 4 * side, generator=generator)
        directions = torch.linalg.qr(random).Q.T.contiguous().view(4, side, config.size.hidden)
        order = torch.randperm(side, generator=generator).tolist()
        num_misled = round((1 - config.draft_agreement) * side)
        return cls(
            token_a=directions[0],
            token_b=directions[1],
            next_a=directions[2],
            next_b=directions[3],
            successor_a=_one_cycle(torch.randperm(side, generator=generator).tolist()),
            successor_b=_one_cycle(torch.randperm(side, generator=generator).tolist()),
            misled=frozenset(order[:num_misled]),
        )

    def early_successor_a(self, a: int) -> int:
        """What the first layers believe: two steps ahead on the cycle where they are misled."""
        successor = self.successor_a[a]
        return self.successor_a[successor] if a in self.misled else successor

    def successor(self, last: int, look_back: int) -> int:
        """The token that follows ``last`` when ``look_back`` is the token ``LOOK_BACK`` positions before it."""
        side = len(self.successor_a)
        return self.successor_a[last // side] * side + self.successor_b[look_back % side]


def _one_cycle(order: list[int]) -> list[int]:
    successor = [0] * len(order)
    for current, following in zip(order, order[1:] + order[:1], strict=True):
        successor[current] = following
    return successor
