"""What vLLM really runs for an assignment, as far as that is known without starting it.

Source: vLLM 0.29 to 0.33, distributed/device_communicators (which backend takes part), config/parallel.py and
config/speculative.py (which values are ignored or refused). Only what always happens is said here; everything else is
found out by a launch.
"""

from __future__ import annotations

from runners.contract import EngineSettings, Resolution
from runners.engine_dialects.engine_options import EngineOptions
from runners.engine_dialects.node import Resolving, arch_names, check_draft, has_nvlink_mesh, ranks_of
from search_spaces import Assignment, Facts

DRAFT_FOR = {"eagle3": ("eagle3",), "eagle": ("eagle",), "draft_model": ("draft_model",), "mtp": ("mtp",)}
CUSTOM_RANKS = (2, 4, 6, 8, 16)
SYMM_MEM_ARCHITECTURES = ("9.0", "10.0", "10.3", "10.7")
SYMM_MEM_RANKS = (2, 4, 6, 8)
NCCL_SYMM_MEM_RANKS = (4, 8)
NCCL_SYMM_MEM_ALWAYS_ABOVE = 8
PLAIN_ALL2ALL = "allgather_reducescatter"


def resolve(
    assignment: Assignment, settings: EngineSettings, facts: Facts, accepted: EngineOptions | None = None
) -> Resolution:
    """Return what vLLM would run, what it would replace without a word, and why it would refuse.

    Args:
        assignment: A point of the space; parameters that a space of the user's own does not have are left out.
        settings: The study's ranks, draft model and fixed options.
        facts: `gpu_arch`, `links`, `num_experts`, `draft_method`, `model_drafts`; what is not known decides nothing.
        accepted: The installed version; nothing that is said here depends on it from 0.29 to 0.33.
    """
    resolving, ranks = Resolving(assignment), ranks_of(assignment, settings)
    if settings.device == "cuda":
        _allreduce(resolving, ranks, facts)
    method = str(resolving.get("speculative_method"))
    check_draft(resolving, method, DRAFT_FOR.get(method, ()), settings, facts)
    if ranks == 1:
        resolving.set("draft_tensor_parallel_size", "same", "the model itself is on one rank")
    _experts(resolving, ranks, settings, facts)
    return resolving.resolution()


def _allreduce(resolving: Resolving, ranks: int, facts: Facts) -> None:
    backend, archs = resolving.get("allreduce"), arch_names(facts)
    if ranks == 1:
        resolving.set("allreduce", "default", "a single rank has nothing to add up")
    elif backend == "custom" and (ranks not in CUSTOM_RANKS or (ranks > 2 and has_nvlink_mesh(facts, ranks) is False)):
        why = "the custom all-reduce is for 2, 4, 6, 8 or 16 ranks, and beyond two for GPUs that are all on NVLink"
        resolving.set("allreduce", "nccl", why)
    elif backend == "torch_symm_mem" and (
        ranks not in SYMM_MEM_RANKS or (archs and not set(archs) <= set(SYMM_MEM_ARCHITECTURES))
    ):
        resolving.set("allreduce", "nccl", "torch symmetric memory has no sizes for this GPU and number of ranks")
    elif backend == "nccl_symm_mem" and ranks not in NCCL_SYMM_MEM_RANKS and ranks <= NCCL_SYMM_MEM_ALWAYS_ABOVE:
        resolving.set("allreduce", "nccl", f"NCCL's symmetric memory is never used for {ranks} ranks")


def _experts(resolving: Resolving, ranks: int, settings: EngineSettings, facts: Facts) -> None:
    given = str(settings.options.get("data-parallel-size", 1))
    data_ranks = int(given) if given.isdigit() else 1  # what is no number, vLLM itself refuses
    if resolving.get("expert_parallel") is True:
        if facts.get("num_experts") == 1:
            resolving.refuse("the model has no experts to be parallel with")
        elif ranks * data_ranks == 1:
            resolving.set("expert_parallel", False, "a single rank holds every expert anyway")
    if data_ranks == 1 and resolving.get("all2all_backend") is not None:
        resolving.set("all2all_backend", PLAIN_ALL2ALL, "experts are exchanged between data-parallel ranks only")
