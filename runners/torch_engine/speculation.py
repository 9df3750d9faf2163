"""One decoding step: draft a few tokens with the early exit, verify them all in one pass, keep what agrees.

Greedy acceptance is lossless: a drafted token is kept only if it is the token that the full model picks at that
place, and the first disagreement is replaced by the full model's own pick. With a draft of length 0 this is plain
decoding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .kv_cache import KVCache
from .model import Decoder


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one step yields for one sequence."""

    emitted: list[int]
    """Tokens to append: the accepted part of the draft, then the full model's next token."""
    accepted: int
    """Drafted tokens that were kept."""
    margins: list[float]
    """Best logit minus second best, for each emitted token."""
    largest_logit: float
    """Largest absolute logit of the pass: the scale against which a margin counts."""


def speculative_step(
    decoder: Decoder, draft_length: int, tokens: torch.Tensor, lengths: torch.Tensor, cache: KVCache
) -> torch.Tensor:
    """Draft and verify for S sequences; ``tokens`` (S,) are not yet in the cache, which holds ``lengths`` (S,)
    positions.

    Returns:
        One float32 row a sequence, so that a single copy brings a step to the host (token ids are exact below 2**24):
        ``draft_length`` drafted tokens, ``draft_length + 1`` picks, as many margins, the largest absolute logit.
    """
    drafted: list[torch.Tensor] = []
    current = tokens
    for distance in range(draft_length):
        early = decoder.logits(current[:, None], lengths + distance, cache, decoder.size.draft_layers)
        current = early[:, 0].argmax(-1)
        drafted.append(current)
    rows = torch.stack([tokens, *drafted], dim=1)
    return pack(decoder.logits(rows, lengths, cache, decoder.size.layers), drafted)


def pack(logits: torch.Tensor, drafted: list[torch.Tensor]) -> torch.Tensor:
    """Picks and margins of ``logits`` (S, Q, V) behind the drafted tokens, as ``speculative_step`` returns them."""
    best = logits.topk(2, dim=-1)
    picks, margins = best.indices[..., 0].float(), best.values[..., 0] - best.values[..., 1]
    largest = logits.abs().amax(dim=(1, 2))
    return torch.cat([*(tokens[:, None].float() for tokens in drafted), picks, margins, largest[:, None]], dim=1)


def judge(packed: list[float], draft_length: int) -> Verdict:
    """Accept the longest agreeing part of the draft of one sequence, from one row of ``speculative_step``.

    Raises:
        FloatingPointError: a logit is NaN or infinite.
    """
    largest_logit = packed[-1]
    if not abs(largest_logit) < float("inf"):
        raise FloatingPointError(
            f"logits are not finite: the largest absolute logit of a verify pass is {largest_logit}"
        )
    drafted = [int(token) for token in packed[:draft_length]]
    picks = [int(token) for token in packed[draft_length : 2 * draft_length + 1]]
    margins = packed[2 * draft_length + 1 : 3 * draft_length + 2]
    accepted = 0
    while accepted < draft_length and drafted[accepted] == picks[accepted]:
        accepted += 1
    return Verdict(picks[: accepted + 1], accepted, margins[: accepted + 1], largest_logit)
