"""Packages that an engine takes for some values, and does not bring along.

Source: vLLM 0.32 utils/import_utils.py (has_deep_ep, has_nixl_ep, has_arctic_inference) and config/speculative.py;
SGLang 0.5.16 to 0.5.23 srt/layers/moe/token_dispatcher (deepep, mooncake, nixl) and srt/layers/flashinfer_comm_fusion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder

from search_spaces import Scalar


@dataclass(frozen=True, slots=True)
class Package:
    """A package by the name that is imported."""

    module: str
    install: str
    """What gets it, for the user to read."""


FLASHINFER = Package("flashinfer", "pip install flashinfer-python")
DEEP_EP = Package("deep_ep", "build DeepEP for this CUDA and torch: https://github.com/deepseek-ai/DeepEP")
NIXL_EP = Package("nixl_ep", "build the expert-parallel part of NIXL: https://github.com/ai-dynamo/nixl")
MOONCAKE = Package("mooncake", "pip install mooncake-transfer-engine")
ARCTIC = Package("arctic_inference", "pip install arctic-inference==0.1.1")

NEEDS: Mapping[str, Mapping[str, Mapping[Scalar, Package]]] = {
    "sglang": {
        "allreduce": {
            "flashinfer_fusion_auto": FLASHINFER,
            "flashinfer_fusion_trtllm": FLASHINFER,
            "flashinfer_fusion_mnnvl": FLASHINFER,
            "flashinfer_fusion_cutedsl": FLASHINFER,
            "pcie_ipc": FLASHINFER,
        },
        "moe_a2a_backend": {"deepep": DEEP_EP, "deepep_v2": DEEP_EP, "mooncake": MOONCAKE, "nixl": NIXL_EP},
    },
    "vllm": {
        "allreduce": {
            "flashinfer_mnnvl": FLASHINFER,
            "flashinfer_trtllm": FLASHINFER,
            "flashinfer_fusion": FLASHINFER,
            "pcie_ipc": FLASHINFER,
        },
        "speculative_method": {"suffix": ARCTIC},
        "all2all_backend": {
            "deepep_low_latency": DEEP_EP,
            "deepep_high_throughput": DEEP_EP,
            "deepep_v2": DEEP_EP,
            "flashinfer_nvlink_two_sided": FLASHINFER,
            "flashinfer_nvlink_one_sided": FLASHINFER,
            "nixl_ep": NIXL_EP,
        },
    },
}
"""Engine → parameter of its space → value → what it needs."""


def missing_package(engine: str, parameter: str, value: Scalar, paths: Sequence[str]) -> Package | None:
    """Return the package that a value needs and that is in none of the folders, or None where nothing is missing."""
    needed = NEEDS.get(engine, {}).get(parameter, {}).get(value)
    if needed is None or PathFinder.find_spec(needed.module, [*paths]) is not None:
        return None
    return needed
