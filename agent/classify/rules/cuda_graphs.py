"""Capturing CUDA graphs: what may not be captured, and what only reports that a capture failed."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Policy, Reason

RULES = (
    Rule(
        code="G001",
        name="cuda-graphs-not-in-build",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(r"Tried to instantiate dummy base class (?:_?CUDAGraph|_CudaGraphBase)",),
        blames=("cuda_graph_max_bs",),
        cure="CUDA graphs need a GPU and a torch built with CUDA: pip install 'torch>=2.9' from PyPI; "
        "on CPUs leave graphs off (cuda_graph_max_bs = 0).",
        source="torch 2.13 torch/_utils.py _dummy_type, torch/cuda/graphs.py; seen on a build without CUDA",
        is_decisive=True,
    ),
    Rule(
        code="G002",
        name="operation-not-capturable",
        reason=Reason.CUDA_GRAPH_INCOMPATIBLE,
        any_of=(
            r"operation not permitted when stream is capturing",
            r"\bcudaErrorStreamCapture(?:Unsupported|Implicit|Isolation|WrongThread|Unjoined|Unmatched|Merge)\b",
            r"operation would make the legacy stream depend on a capturing blocking stream",
        ),
        blames=("allreduce", "cuda_graph_max_bs"),
        cure="Use an allreduce without host work (gloo copies through the host), or leave graphs off.",
        source="CUDA 12.8 runtime, cudaErrorStreamCapture* (900 to 908); torch 2.11 reports it as 'CUDA error: …'",
    ),
    Rule(
        code="G003",
        name="torch-refuses-capture",
        reason=Reason.CUDA_GRAPH_INCOMPATIBLE,
        any_of=(
            r"Cannot .* during CUDA graph capture",
            r"(?:is|are) not (?:allowed|supported|permitted) (?:during|in|while) (?:CUDA )?[Gg]raph capture",
        ),
        blames=("allreduce", "cuda_graph_max_bs"),
        cure="Leave graphs off for this combination, or keep host copies and random numbers out of the captured pass.",
        source="torch 2.11 aten/src/ATen/cuda/CUDAGeneratorImpl.cpp, aten/src/ATen/native/cuda/Copy.cu",
    ),
    Rule(
        code="G004",
        name="capture-failed",
        reason=Reason.CUDA_GRAPH_INCOMPATIBLE,
        any_of=(
            r"operation failed due to a previous error during capture",
            r"\bcudaErrorStreamCaptureInvalidated\b",
            r"cudaStreamCaptureStatusInvalidated",
            r"(?i:capture cuda graph failed)",
        ),
        blames=("cuda_graph_max_bs",),
        cure="The cause stands above this line, or after the colon; without one, repeat with graphs off.",
        source="CUDA 12.8 runtime, cudaErrorStreamCaptureInvalidated (901); SGLang 0.5.16 cuda_graph_runner.py",
        priority=Priority.WRAPPER,
        own_policy=Policy.CONFIRM_ONCE,  # another thread's call may have spoilt this one capture
    ),
    Rule(
        code="G005",
        name="captured-graph-is-empty",
        reason=Reason.CUDA_GRAPH_INCOMPATIBLE,
        any_of=(r"the CUDA graph holds no work",),
        blames=("allreduce", "cuda_graph_max_bs"),
        cure="The step ran outside the graph: use an allreduce that stays on the GPU, or leave graphs off.",
        source="this project's torch engine 0.1, graphs.py",
    ),
)
