"""The reasons a trial can fail for, and what each of them obliges the agent to do: one row a reason.

A reason says *what kind* of failure it was; its policy says what may be concluded. `facts` are the entries of the
environment fingerprint that the failure depends on: when one of them changes, the dead end has to be re-checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a trial failed. The code is what is stored, shown and tagged."""

    CONFIG_INVALID = "config_invalid"
    UNSUPPORTED_ARCH = "unsupported_arch"
    TOPOLOGY_UNSUPPORTED = "topology_unsupported"
    CUDA_GRAPH_INCOMPATIBLE = "cuda_graph_incompatible"
    JIT_COMPILE_ERROR = "jit_compile_error"
    MISSING_DEPENDENCY = "missing_dependency"
    NETWORK_OR_AUTH = "network_or_auth"
    DISK_FULL = "disk_full"
    GPU_OOM = "gpu_oom"
    KERNEL_ERROR = "kernel_error"
    COLLECTIVE_ERROR = "collective_error"
    ASSERTION = "assertion"
    COLLECTIVE_TIMEOUT = "collective_timeout"
    SERVER_HANG = "server_hang"
    PROCESS_KILLED = "process_killed"
    WRONG_OUTPUT = "wrong_output"
    DRAFT_MISMATCH = "draft_mismatch"
    HOST_OOM = "host_oom"
    MODEL_LOAD = "model_load"
    PORT_OR_STALE_PROCESS = "port_or_stale_process"
    BENCHMARK_ERROR = "benchmark_error"
    DRIVER_OR_HARDWARE = "driver_or_hardware"
    UNKNOWN = "unknown"
    NODE_LOST = "node_lost"


class Policy(StrEnum):
    """What one failure with this reason allows the agent to conclude and obliges it to do."""

    DEAD_AT_ONCE = "dead_at_once"
    """One failure is enough: the blamed values are dead in their scope."""
    CONFIRM_ONCE = "confirm_once"
    """Suspected until it failed a second time, at the cheapest rung that can show it."""
    RETRY_ONCE = "retry_once"
    """Launched once more (with stacks where it hung); dead if it fails again."""
    RETRY_OURS = "retry_ours"
    """Our own fault: cleaned up and launched again, at most three times; never a dead end."""
    STOP_STUDY = "stop_study"
    """No parameter is to blame: the study stops cleanly and can be resumed."""
    RECORD_ONLY = "record_only"
    """Launched once more, then only recorded: never generalised."""


TWICE = frozenset({Policy.CONFIRM_ONCE, Policy.RETRY_ONCE, Policy.RECORD_ONLY})
"""Policies that ask for a second launch."""


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """One row of the table: what a reason means and what follows from it."""

    reason: Reason
    policy: Policy
    meaning: str
    facts: tuple[str, ...]


_ROWS = (
    ReasonRow(
        Reason.CONFIG_INVALID,
        Policy.DEAD_AT_ONCE,
        "The engine refuses the combination of settings.",
        ("engine_version", "model", "num_ranks"),
    ),
    ReasonRow(
        Reason.UNSUPPORTED_ARCH,
        Policy.DEAD_AT_ONCE,
        "A kernel or backend is not made for this GPU architecture.",
        ("gpu_arch", "cuda", "torch", "engine_version", "packages"),
    ),
    ReasonRow(
        Reason.TOPOLOGY_UNSUPPORTED,
        Policy.DEAD_AT_ONCE,
        "The links between the ranks cannot carry this backend or algorithm.",
        ("gpu_arch", "links", "p2p", "num_ranks", "nccl", "packages"),
    ),
    ReasonRow(
        Reason.CUDA_GRAPH_INCOMPATIBLE,
        Policy.DEAD_AT_ONCE,
        "The operation cannot be captured into a CUDA graph.",
        ("engine_version", "cuda", "nccl", "torch"),
    ),
    ReasonRow(
        Reason.JIT_COMPILE_ERROR,
        Policy.DEAD_AT_ONCE,
        "A kernel compiled at run time did not compile.",
        ("gpu_arch", "cuda", "torch", "compiler", "packages"),
    ),
    ReasonRow(
        Reason.MISSING_DEPENDENCY,
        Policy.DEAD_AT_ONCE,
        "A library, or a build of it with this feature, is not installed.",
        ("torch", "cuda", "nccl", "packages", "gpu_arch"),
    ),
    ReasonRow(Reason.NETWORK_OR_AUTH, Policy.STOP_STUDY, "A hub, a proxy or a token is in the way.", ()),
    ReasonRow(Reason.DISK_FULL, Policy.STOP_STUDY, "A disk is full.", ()),
    ReasonRow(
        Reason.GPU_OOM,
        Policy.DEAD_AT_ONCE,
        "The GPU's memory does not hold weights, KV cache and graphs together.",
        ("gpu_memory_bytes", "num_ranks", "model", "engine_version"),
    ),
    ReasonRow(
        Reason.KERNEL_ERROR,
        Policy.CONFIRM_ONCE,
        "A kernel failed while running.",
        ("gpu_arch", "cuda", "engine_version", "model"),
    ),
    ReasonRow(
        Reason.COLLECTIVE_ERROR,
        Policy.CONFIRM_ONCE,
        "A collective operation failed.",
        ("gpu_arch", "num_ranks", "links", "cuda", "nccl", "torch", "engine_version"),
    ),
    ReasonRow(
        Reason.ASSERTION,
        Policy.CONFIRM_ONCE,
        "The engine's own check failed.",
        ("gpu_arch", "num_ranks", "cuda", "nccl", "engine_version", "model"),
    ),
    ReasonRow(
        Reason.COLLECTIVE_TIMEOUT,
        Policy.RETRY_ONCE,
        "A collective operation never ended.",
        ("engine_version", "cuda", "nccl", "num_ranks", "links", "p2p"),
    ),
    ReasonRow(
        Reason.SERVER_HANG,
        Policy.RETRY_ONCE,
        "The launch made no progress and was still alive.",
        ("engine_version", "cuda", "nccl", "num_ranks", "links", "p2p"),
    ),
    ReasonRow(
        Reason.PROCESS_KILLED,
        Policy.RETRY_ONCE,
        "A process was ended by a signal that nobody here sent.",
        ("engine_version", "cuda", "nccl", "num_ranks", "links", "p2p"),
    ),
    ReasonRow(
        Reason.WRONG_OUTPUT,
        Policy.CONFIRM_ONCE,
        "NaN, garbage, or tokens that differ from the baseline's.",
        ("gpu_arch", "engine_version", "nccl", "links"),
    ),
    ReasonRow(
        Reason.DRAFT_MISMATCH,
        Policy.DEAD_AT_ONCE,
        "The draft is accepted almost never: it works and is useless.",
        ("model", "draft_model", "engine_version"),
    ),
    ReasonRow(Reason.HOST_OOM, Policy.RETRY_ONCE, "The host's memory ran out.", ("memory_bytes", "num_ranks", "model")),
    ReasonRow(
        Reason.MODEL_LOAD,
        Policy.DEAD_AT_ONCE,
        "The model's or draft's files cannot be loaded.",
        ("model", "draft_model"),
    ),
    ReasonRow(
        Reason.PORT_OR_STALE_PROCESS,
        Policy.RETRY_OURS,
        "A port, lock or process of an earlier launch is in the way.",
        (),
    ),
    ReasonRow(Reason.BENCHMARK_ERROR, Policy.RETRY_OURS, "The load client or the harness failed, not the engine.", ()),
    ReasonRow(Reason.DRIVER_OR_HARDWARE, Policy.STOP_STUDY, "The driver or a GPU is broken.", ()),
    ReasonRow(Reason.UNKNOWN, Policy.RECORD_ONLY, "No rule recognises the evidence; the next rule to write.", ()),
    ReasonRow(Reason.NODE_LOST, Policy.RETRY_OURS, "The node left the cluster: killed, shut down, or cut off.", ()),
)

REASONS: dict[Reason, ReasonRow] = {row.reason: row for row in _ROWS}
