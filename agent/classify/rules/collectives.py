"""Collectives beyond NCCL's own categories: NVSHMEM, DeepEP, custom all-reduce, networks, rendezvous, MoE exchange."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason

RULES = (
    Rule(
        code="V001",
        name="nvshmem-has-no-path",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"neither nv_peer_mem, or nvidia_peermem detected",
            r"Peer GPU \d+ is not accessible",
            r"building transport map failed",
            r"allgather of ipc handles failed",
            r"(?i:no (?:suitable|usable) (?:transport|HCA|NIC|RDMA device)|ibgda.{0,60}(?:fail|not (?:supported|"
            r"found)))",
        ),
        blames=("moe_a2a_backend", "all2all_backend"),
        cure="NVSHMEM reaches a peer over NVLink or GPUDirect RDMA only: load nvidia_peermem, or use another exchange.",
        source="NVSHMEM 2.11 to 3.4 src/host/topo/topo.cpp, transport/ibrc, transport/ibgda",
    ),
    Rule(
        code="V002",
        name="nvshmem-init-failed",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"(?i:nvshmem.{0,60}(?:init(?:ialization)? failed|non-zero status|failed))",
            r"\.(?:cpp|cu):\d+: non-zero status: -?\d+",
            r"NVSHMEM API called before NVSHMEM initialization",
        ),
        blames=("moe_a2a_backend", "all2all_backend"),
        cure="The exchange needs links or a network that are not there: NVSHMEM_DEBUG=INFO shows which one it "
        "looked for.",
        source="NVSHMEM 2.11 to 3.4 src/host/init/init.cu, bootstrap_uid.cpp; DeepEP 1.2",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="V003",
        name="expert-exchange-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(
            r"(?i:deep_?ep.{0,60}(?:timeout|timed out))",
            r"DeepEP (?:dispatch|combine|timeout)\b.*(?:timeout|check failed)",
        ),
        blames=("moe_a2a_backend", "all2all_backend"),
        cure="A rank did not send its tokens: compare the ranks' stacks, and check the dispatch buffer against the "
        "batch.",
        source="DeepEP 1.0 to 1.2 csrc/kernels/internode.cu and intranode.cu, NUM_TIMEOUT_CYCLES",
    ),
    Rule(
        code="V004",
        name="expert-exchange-refuses",
        reason=Reason.ASSERTION,
        any_of=(
            r"(?:EP_HOST_ASSERT|EP_DEVICE_ASSERT|\bEPException\b)",
            r"deep_ep\.cpp:\d+|Failed: Assertion error .*csrc/|Assertion failed: \S+\.cuh?:\d+",
            # Compared in an assertion, or complained of: SGLang 0.5.23 also explains the variable in a healthy start.
            r"(?i:(?:assert\w*|error|fail\w*|exceeds?)\W.{0,120}num_max_dispatch_tokens_per_rank)",
        ),
        none_of=(r"(?i:\bINFO\b|server_args|set to)", r"\bper-rank .{0,60}\bexceeds\b"),
        blames=("moe_a2a_backend", "cuda_graph_max_bs"),
        cure="Batch times draft tokens per rank must stay within the dispatch buffer, and hidden size and experts "
        "fit it.",
        source="DeepEP 1.0 to 1.2 csrc/deep_ep.cpp, csrc/kernels/exception.cuh",
    ),
    Rule(
        code="N012",
        name="custom-allreduce-cannot-share-memory",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(r"(?:CUDART|CUDA) error:? ", r"\bcudaIpc(?:Get|Open)MemHandle\b"),
        above=(r"cudaIpc(?:Get|Open)MemHandle|custom_all_reduce\w*\.py|gpu_p2p_access_check",),
        frame=(r"cuda_wrapper\.py|custom_all_reduce\w*\.py|pynccl|cuda_communicator",),
        none_of=(r"out of memory|illegal|no kernel image",),
        blames=("allreduce",),
        cure="The GPUs cannot map each other's memory (expandable segments, a container without IPC, no P2P): use "
        "NCCL only.",
        source="vLLM 0.5 to 0.33 device_communicators/cuda_wrapper.py, custom_all_reduce_utils.py; SGLang 0.5.23",
    ),
    Rule(
        code="N016",
        name="custom-allreduce-buffers-not-shareable",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(r"(?i:cuda error) \S*custom_all_reduce\w*\.(?:cuh?|hip):\d+ 'invalid",),
        blames=("allreduce",),
        cure="The ranks cannot open each other's buffers: switch expandable_segments off, give the container host "
        "IPC, or "
        "run without custom all-reduce.",
        source="vLLM 0.5 to 0.33 csrc/custom_all_reduce.cuh, CUDACHECK around cudaIpcOpenMemHandle; SGLang sgl-kernel",
    ),
    Rule(
        code="N013",
        name="nccl-cuda-call-failed",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(
            r"\b(?:Cuda|CUDA|HIP) failure:? (?:\d+ )?'",
            r"\bnvml\w+\(\) failed",
            r"\bNCCL WARN .*(?:failed|error|Error|mismatch|timeout)",
            r"ncclCommInitRank\w* .{0,30}failed",
        ),
        none_of=(r"(?i:out of memory|illegal memory|ECC)",),
        cure="NCCL_DEBUG=INFO names the call and the device; try without the setting that this trial changed.",
        source="NCCL 2.18 to 2.30 include/checks.h, misc/nvmlwrap.cc; RCCL 2.22",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="N014",
        name="nccl-network-failed",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(
            r"[Nn]o socket interface found",
            r"Call to (?:connect|bind|listen|accept|ibv_\w+|recv|send)\w* .*(?:failed|returned)",
            r"NET/(?:IB|Socket|OFI) ?: .*(?:error|failed|Got completion)",
            r"\bibv_\w+ failed",
            r"(?:Mismatched NCCL version|NCCL version mismatch)",
        ),
        cure="Name the network with NCCL_SOCKET_IFNAME and NCCL_IB_HCA, and use one NCCL version on all nodes.",
        source="NCCL 2.18 to 2.30 misc/socket.cc, transport/net_ib.cc, bootstrap.cc",
    ),
    Rule(
        code="N015",
        name="collective-failed",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(
            r"\bDistBackendError\b|\bDistNetworkError\b|\bDistStoreError\b|\bDistError\b",
            r"\bNCCL (?:error|Error)\b",
            r"[Dd]etected mismatch between collectives on ranks",
            r"Gloo connectFullMesh failed|[Uu]nable to (?:find|resolve) (?:address|interface|hostname)",
            r"\bmscclpp(?:::)?\w*Error\b|mooncake.{0,40}(?:error|fail)",
        ),
        none_of=(
            r"[Tt]imed? ?out|in use|terminated with exception",
            r"remote process exited|ncclRemoteError|Connection (?:closed|reset)|Broken pipe",
        ),
        cure="NCCL_DEBUG=INFO and TORCH_DISTRIBUTED_DEBUG=DETAIL name the rank and the call; compare with NCCL only.",
        source="torch 2.1 to 2.13 torch/csrc/distributed/c10d/; gloo; vLLM 0.33 and SGLang 0.5.23 pynccl wrappers",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="T012",
        name="process-group-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(
            r"(?:Dist(?:Store|Network|Backend)Error|RuntimeError|TimeoutError): .*(?i:timed? ?out).*(?i:store|"
            r"socket|rank|rendezvous|barrier)",
            r"(?i:heartbeat (?:monitor )?timed out)|Rendezvous(?:Timeout|Connection)Error",
            r"Socket Timeout|Timed out initializing process group",
            r"monitoredBarrier.*(?:failed|timeout)",
        ),
        cure="A rank never arrived: read its own lines; with several nodes, check addresses, interfaces and the "
        "firewall.",
        source="torch 2.1 to 2.13 c10d TCPStore.cpp, ProcessGroupNCCL.cpp, elastic/rendezvous",
        priority=Priority.SYMPTOM,
    ),
)
