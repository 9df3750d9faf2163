"""Memory that ran out: the GPU's, and the host's."""

import signal

from agent.classify.rule import ExitFacts, Priority, Rule
from agent.reasons import Reason
from runners import Phase

_GPU_OUT_OF_MEMORY = (
    r"CUDA out of memory",
    r"torch\.(?:cuda\.)?OutOfMemoryError",
    r"CUDA error: out of memory",
    r"\bCUBLAS_STATUS_ALLOC_FAILED\b",
    r"Cuda failure (?:\d+ )?'out of memory'",
    r"\b(?:cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|CUDNN_STATUS_ALLOC_FAILED)\b",
    r"(?:HIP|XPU|Triton Error \[CUDA\]:|CUDA driver error:|failed with error(?: code)?) out of memory",
)
_OF_THE_HOST = (r"(?i:cudaHost|pinned memory|host memory)",)
_GPU_SOURCE = (
    "torch 2.11 c10/cuda/CUDACachingAllocator.cpp, aten/src/ATen/cuda/CublasHandlePool.cpp; NCCL 2.30 CUDACHECK"
)

RULES = (
    Rule(
        code="M001",
        name="gpu-out-of-memory",
        reason=Reason.GPU_OOM,
        any_of=_GPU_OUT_OF_MEMORY,
        none_of=_OF_THE_HOST,
        cure="Lower the batch, the KV cache's share or NCCL_BUFFSIZE, or use more ranks.",
        source=_GPU_SOURCE,
    ),
    Rule(
        code="M002",
        name="gpu-out-of-memory-in-capture",
        reason=Reason.GPU_OOM,
        any_of=_GPU_OUT_OF_MEMORY,
        none_of=_OF_THE_HOST,
        phases=(Phase.CAPTURE_GRAPHS,),
        blames=("cuda_graph_max_bs",),
        cure="Capture fewer or smaller batches (cuda_graph_max_bs), or leave more memory free for graphs.",
        source=_GPU_SOURCE,
    ),
    Rule(
        code="M018",
        name="gpu-out-of-memory-while-weights-load",
        reason=Reason.GPU_OOM,
        any_of=_GPU_OUT_OF_MEMORY,
        none_of=_OF_THE_HOST,
        phases=(Phase.LOAD_WEIGHTS,),
        blames=("tensor_parallel_size", "tp"),
        cure="The weights alone do not fit: more ranks, a quantised model, or a GPU that nobody else uses.",
        source=_GPU_SOURCE,
    ),
    Rule(
        code="M019",
        name="gpu-out-of-memory-while-serving",
        reason=Reason.GPU_OOM,
        any_of=_GPU_OUT_OF_MEMORY,
        none_of=_OF_THE_HOST,
        phases=(Phase.READY, Phase.SERVE),
        blames=("mem_fraction_static", "gpu_memory_utilization", "max_running_requests", "max_num_seqs"),
        cure="Leave more memory for the work of a step: a lower memory share, shorter prefill chunks, a smaller batch.",
        source=_GPU_SOURCE,
    ),
    Rule(
        code="M003",
        name="host-allocation-failed",
        reason=Reason.HOST_OOM,
        any_of=(
            r"(?:^|[\s\]])MemoryError(?:: |:?$)",
            r"DefaultCPUAllocator: can't allocate memory",
            r"\[Errno 12\] Cannot allocate memory",
            r"\bstd::bad_alloc\b",
        ),
        cure="Free host memory or raise the container's limit; fewer ranks on this host need less.",
        source="torch 2.13 c10/core/impl/alloc_cpu.cpp; CPython 3.11 MemoryError; Linux errno 12",
    ),
    Rule(
        code="M004",
        name="host-oom-killer",
        reason=Reason.HOST_OOM,
        any_of=(
            r"Out of memory: Killed process \d+",
            r"Memory cgroup out of memory",
            r"\boom[-_]kill(?:er)?\b",
            r"\boom_reaper\b",
        ),
        exit_facts=ExitFacts(signals=(int(signal.SIGKILL),)),
        cure="The kernel ended a process for memory: free host memory or raise the container's limit.",
        source="Linux 6.8 mm/oom_kill.c, oom_kill_process",
        priority=Priority.GENERAL,
    ),
)
