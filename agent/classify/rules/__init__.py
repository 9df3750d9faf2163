"""The failure rules, one module a family of software."""

from agent.classify.rule import Rule
from agent.classify.rules import (
    collectives,
    compilers,
    cuda_graphs,
    cuda_kernels,
    engine_code,
    engine_ends,
    engine_memory,
    engine_settings,
    environment,
    hardware,
    hub,
    memory,
    model_files,
    nccl,
    packages,
    process_ends,
    settings,
    symmetric_memory,
    torch_distributed,
    vocabulary,
)

FAMILIES: tuple[tuple[Rule, ...], ...] = (
    collectives.RULES,
    compilers.RULES,
    cuda_graphs.RULES,
    cuda_kernels.RULES,
    engine_code.RULES,
    engine_ends.RULES,
    engine_memory.RULES,
    engine_settings.RULES,
    environment.RULES,
    hardware.RULES,
    hub.RULES,
    memory.RULES,
    model_files.RULES,
    nccl.RULES,
    packages.RULES,
    process_ends.RULES,
    settings.RULES,
    symmetric_memory.RULES,
    torch_distributed.RULES,
    vocabulary.RULES,
)
"""Every family; the order has no meaning."""
