"""What SGLang's settings select, and how many tokens its passes have.

Source: SGLang 0.5.6 to 0.5.23, srt/distributed/parallel_state.py GroupCoordinator (which backend takes a tensor),
srt/entrypoints/engine.py (NCCL's variables), srt/speculative (tokens of a pass).
"""

from __future__ import annotations

from collections.abc import Mapping

from runners.server_probes.choice import Choice, count, is_on
from runners.server_probes.passes import StepRows
from search_spaces import Scalar

CUSTOM_V2, FUSION_BY_ITSELF = (0, 5, 12), (0, 5, 2)
"""Releases from which the newer custom all-reduce is the default, and from which the fusion may switch itself on."""
VALUES = {
    "sglang.custom_v2": "custom",
    "sglang.custom": "custom_legacy",
    "sglang.torch_symm_mem": "torch_symm_mem",
    "nccl": "nccl",
}
"""Collective of the probe server → value of the parameter `allreduce` that selects it."""
FUSION = "flashinfer-allreduce-fusion-backend"
FUSED = "it is fused with the normalisation after it, which only a launch runs"
OVERRIDES = "json-model-override-args"
DRAFT = "speculative-draft-model-path"


def choose(named: Mapping[str, Scalar], variables: Mapping[str, str], release: tuple[int, ...]) -> Choice:
    """Return what sums.

    Args:
        named: Options of the launch, fixed ones and those of the assignment, in our names.
        variables: Its whole environment.
        release: Version of SGLang; empty when it is not known.
    """
    why = _not_probed(named, variables)
    if why:
        return Choice(not_probed=why)
    nvls = is_on(named, "enable-nccl-nvls")
    ours = {"NCCL_CUMEM_ENABLE": "0", "NCCL_NVLS_ENABLE": "1" if nvls else "0"}
    chain = list[str]()
    if not is_on(named, "disable-custom-all-reduce"):
        if release >= CUSTOM_V2 and variables.get("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", "1").lower() not in OFF:
            chain.append("sglang.custom_v2")
        chain.append("sglang.custom")
    if is_on(named, "enable-torch-symm-mem"):
        chain.append("sglang.torch_symm_mem")
    may_fuse = release >= FUSION_BY_ITSELF and not is_on(named, "enforce-disable-flashinfer-allreduce-fusion")
    note = "where the engine switches FlashInfer's fusion on by itself, that runs instead" if may_fuse else ""
    forced = ("NCCL_NVLS_ENABLE",) if nvls else ()
    return Choice(chain=(*chain, "nccl"), needs_multicast=nvls, variables=ours, forced=forced, note=note)


OFF = ("0", "false", "no", "off")


def _not_probed(named: Mapping[str, Scalar], variables: Mapping[str, str]) -> str:
    a2a = str(named.get("moe-a2a-backend", "none"))
    if a2a != "none":
        return f"{a2a} brings kernels of its own, which only a launch calls"
    if FUSION in named or is_on(named, "enable-flashinfer-allreduce-fusion"):
        return FUSED
    if is_on(named, "enable-symm-mem"):
        return "SGLang lets NCCL sum in memory of an allocator of its own, which only a launch sets up"
    if is_on(named, "enable-mscclpp"):
        return "MSCCL++ is tuned at the engine's start and runs in its graphs only"
    if variables.get("SGLANG_ENABLE_PCIE_IPC_ALLREDUCE", "0").lower() not in OFF:
        return "the PCIe-IPC all-reduce is tuned for the model at the engine's start"
    return ""


def graph_limit(named: Mapping[str, Scalar]) -> int | None:
    """Return the largest batch that runs from a CUDA graph: 0 for none, None where the engine chooses it."""
    backend = str(named.get("cuda-graph-backend-decode", ""))
    if is_on(named, "disable-decode-cuda-graph") or is_on(named, "disable-cuda-graph") or backend == "disabled":
        return 0
    return count(named, "cuda-graph-max-bs", 0) or None


def rows(named: Mapping[str, Scalar]) -> StepRows:
    """Return the tokens of a request's passes. What is not said is 3 steps of a chain, as for most models."""
    method = str(named.get("speculative-algorithm", "none"))
    if method == "none":
        return StepRows()
    steps, width = count(named, "speculative-num-steps", 3), count(named, "speculative-eagle-topk", 1)
    verify = count(named, "speculative-num-draft-tokens", steps + 1)
    if method == "NGRAM":
        return StepRows(verify=verify)
    return StepRows(verify=verify, draft_passes=steps, draft=width)
