"""Expert parallelism: each rank owns whole experts, and tokens travel to them by all-to-all.

    rows, the same on every rank → this rank's share → dispatch (all-to-all) → local experts
        → combine (all-to-all) → all-gather

Shapes are static, as a CUDA graph needs: every rank sends every owner a buffer with room for its whole share (fixed
capacity, nothing is ever dropped); rows that no expert of the owner was chosen for are zero.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .collectives import Collectives

Experts = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(rows (R, H), routing weights (R, local experts)) → weighted sum of the local experts' outputs (R, H)."""


def exchange_with_experts(
    collectives: Collectives, experts: Experts, rows: torch.Tensor, routing: torch.Tensor
) -> torch.Tensor:
    """What the chosen experts of all ranks return for ``rows`` (R, H), routed by ``routing`` (R, experts)."""
    num_ranks, hidden = collectives.num_ranks, rows.shape[1]
    num_rows = rows.shape[0]
    missing = -num_rows % num_ranks
    share = slice(
        collectives.rank * (num_rows + missing) // num_ranks, (collectives.rank + 1) * (num_rows + missing) // num_ranks
    )
    own_rows = torch.nn.functional.pad(rows, (0, 0, 0, missing))[share]
    own_routing = torch.nn.functional.pad(routing, (0, 0, 0, missing))[share]

    received = collectives.all_to_all(_dispatch_buffer(own_rows, own_routing, num_ranks)).flatten(0, 1)
    answers = experts(received[:, :hidden], received[:, hidden:])
    returned = collectives.all_to_all(answers.view(num_ranks, -1, hidden))
    return collectives.all_gather(returned.sum(0)).flatten(0, 1)[:num_rows]


def _dispatch_buffer(rows: torch.Tensor, routing: torch.Tensor, num_ranks: int) -> torch.Tensor:
    """(num_ranks, share, H + local experts): for each owner the rows it must work on, with its routing weights behind
    them."""
    by_owner = routing.view(rows.shape[0], num_ranks, -1).transpose(0, 1)
    is_routed = by_owner.amax(-1, keepdim=True) > 0
    return torch.cat([rows * is_routed, by_owner], dim=-1)
