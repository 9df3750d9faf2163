"""What SGLang really runs for an assignment, as far as that is known without starting it.

Source: SGLang 0.5.6 to 0.5.23, srt/distributed (which backend takes part), srt/arg_groups and srt/server_args.py (which
values are forced or refused). Only what always happens is said here; everything else is found out by a launch.
"""

from __future__ import annotations

from runners.contract import EngineSettings, Resolution
from runners.engine_dialects.engine_options import EngineOptions
from runners.engine_dialects.node import (
    FUSION_ARCHITECTURES,
    Resolving,
    arch_majors,
    check_draft,
    has_nvlink_mesh,
    ranks_of,
)
from search_spaces import Assignment, Facts

TREE_METHODS = ("EAGLE", "EAGLE3", "STANDALONE")
DRAFT_FOR = {
    "EAGLE3": ("eagle3",),
    "EAGLE": ("eagle", "mtp"),  # a model's own prediction layers are drafted with as EAGLE
    "STANDALONE": ("draft_model",),
    "DFLASH": ("dflash",),
    "DSPARK": ("dspark",),
}
CUSTOM_RANKS = (2, 4, 6, 8)
SYMM_MEM_RANKS = (2, 4, 6, 8)
PCIE_IPC_RANKS = (2, 4, 8)
MSCCLPP_RANKS, OLD_MSCCLPP_RANKS = (4, 8, 16, 32, 64), (8, 16)
SYMM_MEM_FIXED = (0, 5, 14)
"""Before this release the table of sizes was indexed with architectures that it does not have."""
PREFILL_GRAPH_DEFAULT = (0, 5, 10)
"""Before this release the prefill graph was off unless asked for."""


def resolve(
    assignment: Assignment, settings: EngineSettings, facts: Facts, accepted: EngineOptions | None = None
) -> Resolution:
    """Return what SGLang would run, what it would replace without a word, and why it would refuse.

    Args:
        assignment: A point of the space; parameters that a space of the user's own does not have are left out.
        settings: The study's ranks and draft model.
        facts: `gpu_arch`, `links`, `draft_method`, `model_drafts`; what is not known decides nothing.
        accepted: The installed version; without it nothing that depends on the version is said.
    """
    resolving, ranks = Resolving(assignment), ranks_of(assignment, settings)
    release = accepted.release if accepted else ()
    if settings.device == "cuda":
        _allreduce(resolving, ranks, facts, release)
    _speculation(resolving, settings, facts)
    _experts(resolving, ranks)
    if release and release < PREFILL_GRAPH_DEFAULT and resolving.get("prefill_cuda_graph") == "disabled":
        resolving.set("prefill_cuda_graph", "auto", "before 0.5.10 the prefill graph is off unless it is asked for")
    return resolving.resolution()


def _allreduce(resolving: Resolving, ranks: int, facts: Facts, release: tuple[int, ...]) -> None:
    backend = str(resolving.get("allreduce"))
    if ranks == 1:
        resolving.set("allreduce", "default", "a single rank has nothing to add up")
        return
    majors = arch_majors(facts)
    if backend.startswith("flashinfer_fusion") and majors and not set(majors) <= set(FUSION_ARCHITECTURES):
        resolving.refuse(f"FlashInfer's fused all-reduce is for SM90 and SM10x; this node has {facts.get('gpu_arch')}")
    if backend == "torch_symm_mem" and majors:
        _symmetric_memory(resolving, ranks, majors, release)
    if backend == "mscclpp":
        sizes = OLD_MSCCLPP_RANKS if release and release < SYMM_MEM_FIXED else MSCCLPP_RANKS
        if ranks not in sizes:
            resolving.set("allreduce", "nccl", f"MSCCL++ switches itself off for {ranks} ranks")
    if backend == "pcie_ipc" and ranks not in PCIE_IPC_RANKS:
        resolving.set("allreduce", "nccl", f"the PCIe-IPC all-reduce is not used for {ranks} ranks")
    if backend in ("custom", "custom_legacy", "default"):
        _custom(resolving, backend, ranks, facts, majors)


def _symmetric_memory(resolving: Resolving, ranks: int, majors: tuple[int, ...], release: tuple[int, ...]) -> None:
    unknown = [major for major in majors if major not in FUSION_ARCHITECTURES]
    if not unknown and ranks in SYMM_MEM_RANKS:
        return
    if release and release < SYMM_MEM_FIXED and unknown and max(unknown) >= min(FUSION_ARCHITECTURES):
        resolving.refuse(f"torch symmetric memory dies with KeyError: {max(unknown)} before SGLang 0.5.14")
    elif release >= SYMM_MEM_FIXED or not unknown or max(unknown) < min(FUSION_ARCHITECTURES):
        resolving.set("allreduce", "nccl", "torch symmetric memory has no sizes for this GPU and number of ranks")


def _custom(resolving: Resolving, backend: str, ranks: int, facts: Facts, majors: tuple[int, ...]) -> None:
    """The custom all-reduce of more than two GPUs needs NVLink between all of them; without it NCCL runs.

    `default` is then NCCL too, where the fusion cannot switch itself on.
    """
    if ranks == 2 or has_nvlink_mesh(facts, ranks) is not False:
        if backend == "custom_legacy" and ranks not in CUSTOM_RANKS:
            resolving.set("allreduce", "nccl", f"the older custom all-reduce has no kernel for {ranks} ranks")
        return
    if backend == "default" and (not majors or set(majors) & set(FUSION_ARCHITECTURES)):
        return
    why = "the custom all-reduce of more than two GPUs needs NVLink between all of them"
    resolving.set("allreduce", "nccl", why if backend != "default" else f"{why}, and the fusion another GPU")


def _speculation(resolving: Resolving, settings: EngineSettings, facts: Facts) -> None:
    method = str(resolving.get("speculative_algorithm"))
    check_draft(resolving, method, DRAFT_FOR.get(method, ()), settings, facts)
    steps = resolving.get("speculative_num_steps")
    if method in TREE_METHODS and resolving.get("speculative_eagle_topk") == 1 and isinstance(steps, int):
        why = "with a chain (top-k 1) SGLang verifies steps + 1 tokens"
        resolving.set("speculative_num_draft_tokens", steps + 1, why)


def _experts(resolving: Resolving, ranks: int) -> None:
    backend = resolving.get("moe_a2a_backend")
    if ranks == 1 and backend is not None:
        resolving.set("moe_a2a_backend", "none", "a single rank holds every expert anyway")
    if resolving.get("moe_a2a_backend") not in (None, "none", "ascend_tp"):
        resolving.set("ep_size", ranks, "every all-to-all backend makes SGLang share the experts among all ranks")
