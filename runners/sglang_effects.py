"""What SGLang's log and its server's page prove of its settings. Source: SGLang 0.5.6 to 0.5.23, the lines below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from runners.contract import EffectProof, LogLine
from runners.effects import NCCL_PATTERNS, NO_LINE, Check, Found, first_matches, nccl_checks, proofs, scalar
from search_spaces import Assignment, Scalar

PATTERNS = {
    "args": r"server_args=ServerArgs\(",
    "fallback": r"Setup Custom allreduce failed|[Cc]ustom ?(?:allreduce|all-reduce|AllReduce) is disabled because|"
    r"not supported, communicator is not available|Setup FlashInfer PCIe-IPC allreduce failed",
    "captured": r"Capture (?:target (?:decode|verify) )?(?:cuda|CUDA) graph begin\.(?:.* bs=(\[[\d, ]*\]))?",
    "prefill": r"Capture target prefill CUDA graph begin",
    "pools": r"max_total_num_tokens=\d+.*chunked_prefill_size=(\d+).*max_running_requests=(\d+)",
    "ready": r"The server is fired up and ready to roll",
}
ARGUMENTS = (
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "ep_size",
    "moe_a2a_backend",
    "mem_fraction_static",
    "tp_size",
)
"""Parameters whose resolved value stands under their own name in the arguments that the engine prints."""
SWITCHES: dict[str, tuple[str, Scalar]] = {
    "nccl": ("disable_custom_all_reduce", True),
    "custom": ("disable_custom_all_reduce", False),
    "custom_legacy": ("disable_custom_all_reduce", False),
    "flashinfer_fusion_auto": ("flashinfer_allreduce_fusion_backend", "auto"),
    "flashinfer_fusion_trtllm": ("flashinfer_allreduce_fusion_backend", "trtllm"),
    "flashinfer_fusion_mnnvl": ("flashinfer_allreduce_fusion_backend", "mnnvl"),
    "flashinfer_fusion_cutedsl": ("flashinfer_allreduce_fusion_backend", "cutedsl"),
    "torch_symm_mem": ("enable_torch_symm_mem", True),
    "nccl_symm_mem": ("enable_symm_mem", True),
    "nccl_nvls": ("enable_nccl_nvls", True),
    "mscclpp": ("enable_mscclpp", True),
}
"""Value of `allreduce` → the argument that says so, and its resolved value; without it NCCL runs."""


INFO_NAMES = tuple(dict.fromkeys((*ARGUMENTS, *(name for name, _ in SWITCHES.values()))))
"""Arguments that the server tells on its page: all of `ServerArgs` stands there, as it was resolved.

Source: SGLang 0.5.6 to 0.5.23, entrypoints/http_server.py, `/server_info` and `/get_server_info`.
"""
PAGE = "/server_info says"


def effects(
    assignment: Assignment, lines: Iterable[LogLine], info: Mapping[str, Scalar] | None = None
) -> Iterator[EffectProof]:
    """Yield what the log, and what the server said of itself when it served, prove about SGLang's parameters.

    The server's answer goes first: it is later than the line in which the log shows the arguments.
    """
    return proofs(assignment, _Log(lines, info or {}).checks())


class _Log:
    """The lines of one log that tell what runs, and the server's answer."""

    def __init__(self, lines: Iterable[LogLine], info: Mapping[str, Scalar]) -> None:
        self._found = first_matches(lines, {**PATTERNS, **NCCL_PATTERNS})
        self._info = info

    def checks(self) -> dict[str, Check]:
        """Return the check of each parameter that the log may tell about."""
        arguments: dict[str, Check] = {name: self._check_of(name) for name in ARGUMENTS}
        return (
            nccl_checks(self._found)
            | arguments
            | {
                "allreduce": self._allreduce,
                "cuda_graph_max_bs": lambda _: self._cuda_graph_max_bs(),
                "prefill_cuda_graph": lambda _: self._prefill_cuda_graph(),
                "chunked_prefill_size": lambda _: self._pool(1),
                "max_running_requests": lambda _: self._pool(2),
            }
        )

    def _check_of(self, name: str) -> Check:
        return lambda _: self._argument(name)

    def _argument(self, name: str) -> Found | None:
        if name in self._info:
            said = self._info[name]
            value = said.lower() if isinstance(said, str) and said.lower() == "none" else said
            return Found(value, LogLine(number=NO_LINE, text=f"{PAGE} {name}={said}"))
        if "args" not in self._found:
            return None
        line, match = self._found["args"]
        inside = re.compile(rf"\b{name}=('[^']*'|[^,)]*)").search(line.text, match.end())
        return None if inside is None else Found(scalar(inside[1]), line, inside.start())

    def _pool(self, group: int) -> Found | None:
        if "pools" not in self._found:
            return None
        line, match = self._found["pools"]
        return Found(int(match[group]), line, match.start())

    def _allreduce(self, requested: Scalar) -> Found | None:
        """A backend that could not be set up leaves a warning, and NCCL in its place."""
        if requested != "nccl" and "fallback" in self._found:
            line, match = self._found["fallback"]
            return Found("nccl", line, match.start())
        name, wanted = SWITCHES.get(str(requested), ("", False))
        found = self._argument(name) if name else None
        return None if found is None else found.as_(requested if found.value == wanted else "nccl")

    def _cuda_graph_max_bs(self) -> Found | None:
        if "captured" in self._found:
            line, match = self._found["captured"]
            sizes = [int(number) for number in re.findall(r"\d+", match[1] or "")]
            return Found(max(sizes), line, match.start()) if sizes else None
        return self._absent()

    def _absent(self) -> Found | None:
        """A server that became ready without a line about graphs captured none."""
        if "ready" not in self._found:
            return None
        return Found(0, self._found["ready"][0])

    def _prefill_cuda_graph(self) -> Found | None:
        if "prefill" in self._found:
            return Found("auto", self._found["prefill"][0])
        absent = self._absent()
        return None if absent is None else absent.as_("disabled")
