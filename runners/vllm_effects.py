"""What vLLM's log proves about its settings. Source: vLLM 0.29 to 0.33, the lines named below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from runners.contract import EffectProof, LogLine
from runners.effects import NCCL_PATTERNS, Check, Found, first_matches, literal, nccl_checks, proofs, scalar
from search_spaces import Assignment, Scalar

PATTERNS = {
    "args": r"non-default args: (\{.*\})",
    "config": r"Initializing a V\d LLM engine .* with config: (.*)",
    "allreduce": r"Using (\[.*?\]) all-reduce backends \(in dispatch order\) for group 'tp:0'",
    "all2all": r"Using (\w+) all2all manager",
    "batched": r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)",
    "captured": r"Graph capturing finished",
}
BACKENDS = {
    "nccl": "PYNCCL",
    "custom": "CUSTOM",
    "flashinfer_mnnvl": "FLASHINFER",
    "flashinfer_trtllm": "FLASHINFER",
    "torch_symm_mem": "SYMM_MEM",
    "nccl_symm_mem": "NCCL_SYMM_MEM",
    "pcie_ipc": "FLASHINFER_PCIE_IPC",
}
"""Value of `allreduce` → the name of its backend in the log's list, of which the first eligible one runs."""
_BY_BACKEND = {backend: value for value, backend in reversed(BACKENDS.items())}


def effects(assignment: Assignment, lines: Iterable[LogLine]) -> Iterator[EffectProof]:
    """Yield what the log proves about the parameters of vLLM's space."""
    return proofs(assignment, _Log(lines).checks())


class _Log:
    """The lines of one log that tell what runs."""

    def __init__(self, lines: Iterable[LogLine]) -> None:
        self._found = first_matches(lines, {**PATTERNS, **NCCL_PATTERNS})
        shown = self._found.get("args")
        args = literal(shown[1][1]) if shown else {}
        self._args = args if isinstance(args, dict) else {}

    def checks(self) -> dict[str, Check]:
        """Return the check of each parameter that the log may tell about."""
        return nccl_checks(self._found) | {
            "allreduce": self._allreduce,
            "speculative_method": lambda _: self._in_config(
                r"speculative_config=(?:SpeculativeConfig\(method=)?(['\w]+)"
            ),
            "num_speculative_tokens": lambda _: self._in_config(r"num_spec_tokens=(\d+)"),
            "cuda_graph_max_bs": self._cuda_graph_max_bs,
            "cudagraph_mode": lambda _: self._in_config(r"'cudagraph_mode': <CUDAGraphMode\.(\w+)"),
            "expert_parallel": lambda _: self._argument("enable_expert_parallel", False),
            "all2all_backend": lambda _: self._argument("all2all_backend", "allgather_reducescatter"),
            "tensor_parallel_size": lambda _: self._in_config(r"tensor_parallel_size=(\d+)"),
            "max_num_seqs": lambda _: self._argument("max_num_seqs"),
            "max_num_batched_tokens": lambda _: self._batched(),
            "gpu_memory_utilization": lambda _: self._argument("gpu_memory_utilization"),
        }

    def _argument(self, name: str, otherwise: Scalar | None = None) -> Found | None:
        if "args" not in self._found:
            return None
        line, match = self._found["args"]
        value = self._args.get(name, otherwise)
        return None if value is None else Found(scalar(repr(value)), line, max(line.text.find(name), match.start()))

    def _in_config(self, pattern: str) -> Found | None:
        if "config" not in self._found:
            return None
        line, match = self._found["config"]
        inside = re.compile(pattern).search(line.text, match.start(1))
        return None if inside is None else Found(scalar(inside[1]), line, inside.start())

    def _batched(self) -> Found | None:
        if "batched" not in self._found:
            return self._argument("max_num_batched_tokens")
        line, match = self._found["batched"]
        return Found(int(match[1]), line, match.start())

    def _allreduce(self, requested: Scalar) -> Found | None:
        """The first backend of the list is the one that runs; a wanted one that is not first fell back silently."""
        if requested not in BACKENDS or "allreduce" not in self._found:
            return None
        line, match = self._found["allreduce"]
        names = literal(match[1])
        if not isinstance(names, list) or not names:
            return None
        first = str(names[0])
        return Found(requested if first == BACKENDS[str(requested)] else _BY_BACKEND.get(first, first.lower()), line)

    def _cuda_graph_max_bs(self, requested: Scalar) -> Found | None:
        """Sizes are tokens, of which a verify pass has more than one for each request."""
        eager = self._in_config(r"enforce_eager=(True|False)")
        if eager is None:
            return None
        if eager.value is True:
            return eager.as_(0)
        sizes = self._in_config(r"'cudagraph_capture_sizes': (\[[\d, ]*\])")
        largest = max((int(number) for number in re.findall(r"\d+", str(sizes.value))), default=0) if sizes else 0
        drafted = self._in_config(r"num_spec_tokens=(\d+)")
        per_request = 1 + (int(drafted.value) if drafted else 0)
        return sizes.as_(largest // per_request) if sizes is not None else None
