"""The failure rules, one module a family of software."""

from agent.classify.rule import Rule
from agent.classify.rules import (
    cuda_graphs,
    cuda_kernels,
    environment,
    memory,
    nccl,
    process_ends,
    settings,
    symmetric_memory,
    torch_distributed,
)

FAMILIES: tuple[tuple[Rule, ...], ...] = (
    cuda_graphs.RULES,
    cuda_kernels.RULES,
    environment.RULES,
    memory.RULES,
    nccl.RULES,
    process_ends.RULES,
    settings.RULES,
    symmetric_memory.RULES,
    torch_distributed.RULES,
)
"""Every family; the order has no meaning."""
