"""Symmetric memory of torch: peer-mapped buffers, multicast, and the collectives over them."""

from agent.classify.rule import Rule
from agent.reasons import Reason

_ALLREDUCE = ("allreduce",)

RULES = (
    Rule(
        code="S001",
        name="symmetric-memory-not-in-build",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(
            r"SymmetricMemory does not support device type \w+",
            r"SymmetricMemory MemPool did not find backend for device type \w+",
            r"SymmetricMemory does not find allocation backend \w+",
            r"CUDASymmetricMemory requires PYTORCH_C10_DRIVER_API_SUPPORTED",
            r"Could not run 'symm_mem::\w+' with arguments from the '\w+' backend",
            r"'_OpNamespace' 'symm_mem' object has no attribute",
        ),
        blames=_ALLREDUCE,
        cure="Symmetric memory needs CUDA GPUs and a torch built with CUDA: pip install 'torch>=2.9' from PyPI; "
        "on CPUs use another allreduce.",
        source="torch 2.13 torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.cpp, seen on a build without CUDA; "
        "torch 2.11 CUDASymmetricMemory.cu",
        is_decisive=True,
    ),
    Rule(
        code="S002",
        name="multicast-unsupported",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"multimem_\w+: (?:requires multicast support|multicast support is required)",
            r"multimem_\w+: output must have multicast support",
        ),
        blames=_ALLREDUCE,
        cure="Multicast needs NVSwitch and a running Fabric Manager: use a one-shot or two-shot all-reduce instead.",
        source="torch 2.11 torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu, multimem_*",
        is_decisive=True,
    ),
    Rule(
        code="S003",
        name="peer-memory-unreachable",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"failed to import memory from rank \d+",
            r"ranks have mismatched NVLink clique_ids",
            r"detected allocations from overlapping devices from different ranks",
        ),
        blames=_ALLREDUCE,
        cure="Each rank needs a GPU of its own with P2P access to the others: see nvidia-smi topo -p2p r.",
        source="torch 2.11 torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemory.cu, rendezvous",
        is_decisive=True,
    ),
    Rule(
        code="S004",
        name="symmetric-memory-refuses-tensor",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"input (?:size|ptr \+ offset) must be at least \d+-byte aligned",
            r"must be allocated with empty_strided_p2p\(\)",
            r"(?:all_reduce|all_gather|reduce_scatter)\w*: only \w+ is supported for now",
            r"Not implemented for (?:world_size|ali?gn?ment)=\d+",
        ),
        blames=_ALLREDUCE,
        cure="This collective has no kernel for this size, type or number of ranks: use another allreduce.",
        source="torch 2.11 torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu, get_and_verify_alignment",
    ),
    Rule(
        code="S005",
        name="symmetric-memory-signal-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(r"\[FATAL\] CUDASymmetricMemory::\w+:? rank \d+ failed to (?:send|receive) signal",),
        blames=_ALLREDUCE,
        cure="A rank did not reach the barrier: compare the ranks' stacks, and repeat once.",
        source="torch 2.11 torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemory.cu, put_signal and wait_signal",
        is_decisive=True,
    ),
)
