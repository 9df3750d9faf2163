"""How failures look in an engine's log: a bank of lines for generated nodes, in the words of the real software.

Each text is what SGLang 0.5, torch 2.9 or NCCL 2.27 print for such a failure, with its place in a launch and its exit.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_spaces.node_parts import PhaseName

TRACE = "[2026-03-02 09:14:{second} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):"
CHILD = "Received sigquit from a child process. It usually means the child failed."


@dataclass(frozen=True, slots=True)
class FailureText:
    """One way in which a failure shows. `{flag}` and `{value}` in a line stand for the parameter that it names."""

    reason: str
    phase: PhaseName
    lines: tuple[str, ...]
    seconds: float
    code: int | None = 1
    signal: int | None = None
    cause: str = "exited"

    @property
    def names_parameter(self) -> bool:
        """True when a line names a parameter of its cause."""
        return any("{flag}" in line for line in self.lines)


def _killed(reason: str, phase: PhaseName, seconds: float, *lines: str) -> FailureText:
    """A death in a worker: SGLang's leader then kills itself, which shows as signal 9."""
    return FailureText(reason, phase, (TRACE, *lines, CHILD), seconds, code=None, signal=9)


def _silent(reason: str, phase: PhaseName, *lines: str) -> FailureText:
    return FailureText(reason, phase, lines, 300.0, code=None, signal=15, cause="no_progress")


TEXTS = (
    FailureText(
        "config_invalid",
        "spawn",
        (
            "Traceback (most recent call last):",
            '  File "/opt/engine/sglang/srt/server_args.py", line 2210, in check_server_args',
            "ValueError: {flag} {value} is not supported with the other arguments",
        ),
        14.0,
    ),
    FailureText(
        "config_invalid",
        "spawn",
        (
            "Traceback (most recent call last):",
            '  File "/opt/engine/sglang/srt/server_args.py", line 1874, in _handle_moe_kernel_config',
            "AssertionError: this combination of MoE runner and quantization is not supported",
        ),
        14.0,
    ),
    _killed(
        "unsupported_arch",
        "init_distributed",
        31.0,
        '  File "/opt/engine/sglang/srt/distributed/parallel_state.py", line 611, in initialize_model_parallel',
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    ),
    _killed(
        "unsupported_arch",
        "init_distributed",
        33.0,
        '  File "/opt/engine/sglang/srt/layers/communicator.py", line 240, in _resolve_fusion',
        "ValueError: FlashInfer allreduce fusion requires SM90 or SM10X",
    ),
    _killed(
        "topology_unsupported",
        "init_distributed",
        36.0,
        "[rank{rank}]: torch.distributed.DistBackendError: NCCL error: no algorithm/protocol available for function "
        "AllGather with datatype ncclBfloat16.",
    ),
    _killed(
        "topology_unsupported",
        "init_distributed",
        35.0,
        "RuntimeError: multimem_all_reduce_: multicast support is required",
    ),
    _killed(
        "cuda_graph_incompatible",
        "capture_graphs",
        41.0,
        '  File "/opt/engine/sglang/srt/model_executor/cuda_graph_runner.py", line 701, in capture_one_batch_size',
        "RuntimeError: CUDA error: operation not permitted when stream is capturing",
    ),
    _killed(
        "cuda_graph_incompatible",
        "capture_graphs",
        44.0,
        '  File "/opt/engine/sglang/srt/model_executor/cuda_graph_runner.py", line 688, in capture_one_batch_size',
        "Exception: Capture cuda graph failed: CUDA error: operation failed due to a previous error during capture",
    ),
    _killed(
        "jit_compile_error",
        "compile",
        95.0,
        "ninja: build stopped: subcommand failed.",
        "RuntimeError: Error building extension 'gemm_grouped_sm': "
        "ptxas fatal   : Value 'sm_120f' is not defined for option 'gpu-name'",
    ),
    _killed(
        "jit_compile_error",
        "compile",
        70.0,
        "triton.compiler.errors.CompilationError: at 41:12: incompatible shapes in dot operand",
    ),
    FailureText(
        "missing_dependency",
        "spawn",
        (
            "Traceback (most recent call last):",
            '  File "/opt/engine/sglang/srt/layers/moe/token_dispatcher/deepep.py", line 31, in <module>',
            "ModuleNotFoundError: No module named 'deep_ep'",
        ),
        24.0,
    ),
    _killed(
        "gpu_oom",
        "capture_graphs",
        48.0,
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.19 GiB. GPU {rank} has a total "
        "capacity of 94.97 GiB of which 612.00 MiB is free.",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.19 GiB.",
        "Possible solutions:",
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    ),
    _killed(
        "gpu_oom",
        "alloc_kv",
        22.0,
        '  File "/opt/engine/sglang/srt/model_executor/model_runner.py", line 1402, in init_memory_pool',
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: {value}",
    ),
    _killed(
        "kernel_error",
        "warmup",
        25.0,
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "CUDA kernel errors might be asynchronously reported at some other API call",
    ),
    _killed(
        "kernel_error",
        "serve",
        40.0,
        "RuntimeError: CUDA error: misaligned address",
    ),
    _killed(
        "collective_error",
        "warmup",
        27.0,
        "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
        "NCCLUtils.cpp:94, unhandled system error, NCCL version 2.27.5",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
    ),
    _killed(
        "collective_error",
        "init_distributed",
        29.0,
        "RuntimeError: NCCL error: internal error - please report this issue to the NCCL developers",
    ),
    _killed(
        "assertion",
        "alloc_kv",
        24.0,
        '  File "/opt/engine/sglang/srt/mem_cache/memory_pool.py", line 388, in __init__',
        "    assert self.page_size == kernel_block_size",
        "AssertionError",
    ),
    _killed(
        "assertion",
        "warmup",
        30.0,
        '  File "/opt/engine/sglang/srt/layers/moe/token_dispatcher/flashinfer.py", line 120, in dispatch',
        "    assert topk_ids.shape[0] <= self.max_num_tokens",
        "AssertionError",
    ),
    _silent(
        "collective_timeout",
        "init_distributed",
        "[2026-03-02 09:14:{second} TP{rank}] Init torch distributed begin.",
        "NCCL INFO Connected all rings, use ring PXN 0 GDR 0",
        "[rank{rank}]:[E302 09:24:{second}.204 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=17, OpType=ALLREDUCE, NumelIn=7168, NumelOut=7168, Timeout(ms)=600000) "
        "ran for 600019 milliseconds before timing out.",
    ),
    _silent(
        "collective_timeout",
        "warmup",
        "[2026-03-02 09:16:{second} TP{rank}] Capture cuda graph end. Time elapsed: 14.20 s.",
        "[2026-03-02 09:21:{second} TP{rank}] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    ),
    _silent(
        "server_hang",
        "warmup",
        "[2026-03-02 09:16:{second}] max_total_num_tokens=181201, chunked_prefill_size=8192, max_running_requests=48",
        "[2026-03-02 09:21:{second}] TimeoutError: timed out waiting for the server to answer its first request",
    ),
    FailureText(
        "process_killed",
        "serve",
        (
            "[2026-03-02 09:18:{second}] Subprocess scheduler_{rank} crashed with exit code -11. "
            "Triggering SIGQUIT for cleanup...",
            CHILD,
        ),
        33.0,
        code=None,
        signal=9,
    ),
    FailureText(
        "process_killed",
        "warmup",
        (
            "Fatal Python error: Segmentation fault",
            "Segmentation fault (core dumped)",
            "[2026-03-02 09:18:{second}] Subprocess scheduler_{rank} crashed with exit code -11. "
            "Triggering SIGQUIT for cleanup...",
        ),
        21.0,
        code=None,
        signal=9,
    ),
)

AT_PROBE = frozenset(
    {"unsupported_arch", "topology_unsupported", "cuda_graph_incompatible", "collective_error", "collective_timeout"}
)
"""Reasons that a probe of the collectives can show."""
FLAKY = ("collective_timeout", "process_killed", "kernel_error", "server_hang")
"""Reasons that come and go on real nodes, and that are retried."""
