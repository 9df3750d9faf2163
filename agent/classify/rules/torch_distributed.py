"""Process groups of torch.distributed: builds without a backend, rendezvous, gloo, and the NCCL watchdog."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason
from runners import Phase

_CUDA_WHEEL = (
    "Install the wheel from PyPI, which on Linux holds CUDA and NCCL: "
    "pip install --force-reinstall torch"
)

RULES = (
    Rule(
        code="T001",
        name="torch-built-without-nccl",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(r"Distributed package doesn't have NCCL built in",),
        blames=("allreduce",),
        cure=_CUDA_WHEEL,
        source="torch 2.13 torch/distributed/distributed_c10d.py, _new_process_group_helper; same text since 1.x",
        is_decisive=True,
    ),
    Rule(
        code="T002",
        name="nccl-without-gpu",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",),
        blames=("allreduce",),
        cure="NCCL needs a GPU that this process sees: check CUDA_VISIBLE_DEVICES, or use a backend for CPUs (gloo).",
        source="torch 2.11 torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, constructor; same text since 1.13",
        is_decisive=True,
    ),
    Rule(
        code="T003",
        name="torch-built-without-cuda",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(
            r"Torch not compiled with CUDA enabled",
            r"torch\.cuda\.\w+ requires CUDA support",
            r"module 'torch\._C' has no attribute '_cuda_",
        ),
        cure=_CUDA_WHEEL,
        source="torch 2.13 torch/cuda/__init__.py, _lazy_init; torch/csrc/cuda bindings",
        is_decisive=True,
    ),
    Rule(
        code="T004",
        name="no-gpu-visible",
        reason=Reason.DRIVER_OR_HARDWARE,
        any_of=(r"No CUDA GPUs are available", r"Found no NVIDIA driver on your system"),
        cure="Make nvidia-smi list the GPU inside this environment (driver, container runtime, CUDA_VISIBLE_DEVICES).",
        source="torch 2.11 torch/csrc/cuda/Module.cpp and c10/cuda/CUDAFunctions.cpp, device_count_ensure_non_zero",
    ),
    Rule(
        code="T005",
        name="graph-capture-without-gpu",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(r"No CUDA GPUs are available", r"Found no NVIDIA driver on your system"),
        phases=(Phase.CAPTURE_GRAPHS,),
        blames=("cuda_graph_max_bs",),
        cure="CUDA graphs need a GPU: on CPUs leave them off (cuda_graph_max_bs = 0).",
        source="torch 2.11 c10/cuda/CUDAFunctions.cpp, device_count_ensure_non_zero, from torch.cuda.CUDAGraph()",
    ),
    Rule(
        code="T006",
        name="rendezvous-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(
            r"Timed out after \d+ seconds waiting for clients",
            r"wait timeout after \d+ms, keys:",
            r"The client socket has timed out after .* while trying to connect",
            r"TCP client failed to connect/validate to host .* timed out",
            r"gloo.*Connect timeout",
        ),
        cure="A rank never arrived: read its own lines; with several nodes, check MASTER_ADDR and the firewall.",
        source="torch 2.13 torch/csrc/distributed/c10d/TCPStore.cpp and socket.cpp; gloo/transport/tcp",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="T007",
        name="gloo-operation-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(r"Timed out waiting \d+ms for (?:send|recv) operation to complete", r"timed out in monitoredBarrier"),
        cure="A rank left out or was late for a collective: compare the ranks' stacks.",
        source="torch 2.13 third_party/gloo/gloo/transport/tcp/unbound_buffer.cc, waitRecv and waitSend",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="T008",
        name="gloo-size-mismatch",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(r"Received data size doesn't match expected size", r"op\.preamble\.length <= op\.nbytes"),
        cure="The ranks called different collectives or sizes: report it with both ranks' stacks.",
        source="torch 2.13 third_party/gloo/gloo/transport/tcp/pair.cc, Pair::read",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="T009",
        name="peer-closed-connection",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(r"Connection (?:closed|reset) by peer", r"gloo.*Broken pipe"),
        cure="Read what the other rank said before this line; this one only noticed.",
        source="torch 2.13 third_party/gloo/gloo/transport/tcp/pair.cc, Pair::changeState",
        priority=Priority.FOLLOW_UP,
    ),
    Rule(
        code="T010",
        name="nccl-watchdog-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(r"Watchdog caught collective operation timeout", r"Some NCCL operations have failed or timed out"),
        cure="Repeat with stacks; with only graph replays in them try NCCL_GRAPH_REGISTER=0, then another allreduce.",
        source="torch 2.11 torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, WorkNCCL::checkTimeout; same since 1.13",
        priority=Priority.SYMPTOM,
        is_decisive=True,
    ),
    Rule(
        code="T011",
        name="backend-lacks-operation",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"No backend type associated with device type \w+",
            r"Backend \w+ does not (?:support|implement) \w+",
            r"ProcessGroup\w* does not support \w+",
        ),
        blames=("allreduce",),
        cure="Choose an allreduce whose collectives this backend has on this device.",
        source="torch 2.13 torch/csrc/distributed/c10d/ProcessGroup.hpp getBackend, Backend.hpp",
    ),
)
