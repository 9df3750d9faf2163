"""What vLLM's settings select, and how many tokens its passes have.

Source: vLLM 0.29 to 0.33, distributed/device_communicators/cuda_communicator.py CudaCommunicator (which backend takes a
tensor, and which are on unless switched off), config/speculative.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from runners.server_probes.choice import Choice, count, is_on
from runners.server_probes.passes import StepRows
from search_spaces import Scalar

VALUES = {"vllm.custom": "custom", "vllm.torch_symm_mem": "torch_symm_mem", "nccl": "nccl"}
"""Collective of the probe server → value of the parameter `allreduce` that selects it. FlashInfer has two values."""
FLASHINFER = "VLLM_FLASHINFER_ALLREDUCE_BACKEND"
METHOD, DRAFT = "speculative-config.method", "speculative-config.model"
OVERRIDES = "hf-overrides"
WITHOUT_DRAFT_MODEL = ("none", "ngram", "ngram_gpu", "suffix")


def choose(named: Mapping[str, Scalar], variables: Mapping[str, str], release: tuple[int, ...]) -> Choice:
    """Return what sums.

    Args:
        named: Options of the launch, fixed ones and those of the assignment, in our names.
        variables: Its whole environment.
        release: Version of vLLM; nothing that is said here depends on it from 0.29 to 0.33.
    """
    if is_on(named, "compilation-config.pass_config.fuse_allreduce_rms"):
        return Choice(not_probed="it is fused with the normalisation after it, which only a launch compiles")
    if variables.get("VLLM_USE_NCCL_SYMM_MEM", "0") != "0":
        return Choice(not_probed="vLLM lets NCCL sum in memory of an allocator of its own, which only a launch sets up")
    if variables.get("VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC", "0") != "0":
        return Choice(not_probed="the PCIe-IPC all-reduce is tuned for the model at the engine's start")
    chain, needs_multicast = list[str](), False
    if variables.get("VLLM_ALLREDUCE_USE_FLASHINFER", "1") != "0":
        chain.append("vllm.flashinfer")
        needs_multicast = variables.get(FLASHINFER, "auto") != "trtllm"
    if not is_on(named, "disable-custom-all-reduce"):
        chain.append("vllm.custom")
    if variables.get("VLLM_ALLREDUCE_USE_SYMM_MEM", "1") != "0":
        chain.append("vllm.torch_symm_mem")
    return Choice(chain=(*chain, "nccl"), needs_multicast=needs_multicast)


def graph_limit(named: Mapping[str, Scalar]) -> int | None:
    """Return the largest batch that runs from a CUDA graph: 0 for none, None where the engine chooses it."""
    if is_on(named, "enforce-eager") or str(named.get("compilation-config.cudagraph_mode", "")) == "NONE":
        return 0
    return count(named, "cuda-graph-max-bs", 0) or None


def rows(named: Mapping[str, Scalar]) -> StepRows:
    """Return the tokens of a request's passes. A draft that is whole on each rank exchanges nothing."""
    method = str(named.get(METHOD, "none"))
    if method == "none":
        return StepRows()
    drafted = count(named, "speculative-config.num_speculative_tokens", 1)
    is_split = str(named.get("speculative-config.draft_tensor_parallel_size", "")) != "1"
    passes = drafted if is_split and method not in WITHOUT_DRAFT_MODEL else 0
    return StepRows(verify=drafted + 1, draft_passes=passes)
