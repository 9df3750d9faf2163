"""NCCL: what its settings refuse, what its links cannot do, and the categories its errors come in."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason

RULES = (
    Rule(
        code="N001",
        name="nccl-no-algorithm",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"(?i:no algorithm/protocol available) for function \w+(?: with datatype \w+\.)?"
            r"(?: (?P<env_algo>NCCL_ALGO) was set to [^ ]+)?(?: (?P<env_proto>NCCL_PROTO) was set)?",
        ),
        blames=("nccl_algo",),
        cure="Name an algorithm that has a path here for every collective in use, scoped: allreduce:ring or "
        "allreduce:tree (a bare Tree leaves all-gather with nothing). NVLS needs multicast, off or missing here.",
        source="NCCL 2.24 to 2.30 src/enqueue.cc, topoGetAlgoInfo",
        is_decisive=True,
    ),
    Rule(
        code="N002",
        name="nccl-setting-invalid",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"Unrecognized (?:element|prefix) token \"",
            r"All entries except the first must have a prefix",
            r"(?i:invalid (?:value (?:[^ ]+ )?for )?)(?P<env>NCCL_(?:ALGO|PROTO|P2P_\w+|NTHREADS|BUFFSIZE|M\w+_CTAS))",
        ),
        blames=("nccl_algo", "nccl_proto"),
        cure="Use the spelling of the installed NCCL's documentation; a wrong token is an error since NCCL 2.24.",
        source="NCCL 2.24 to 2.30 src/graph/tuning.cc, parseList",
        is_decisive=True,
    ),
    Rule(
        code="N003",
        name="nccl-nvls-unavailable",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory",
            r"NCCL_NVLS_ENABLE has been set to .* and communicator has multiple ranks using the same NVML device",
        ),
        blames=("allreduce", "nccl_algo"),
        cure="Exclude it (NCCL_ALGO without NVLS, or NCCL_NVLS_ENABLE=0), or repair the Fabric Manager.",
        source="NCCL 2.29 src/transport/nvls.cc",
    ),
    Rule(
        code="N004",
        name="nccl-no-path-between-ranks",
        reason=Reason.TOPOLOGY_UNSUPPORTED,
        any_of=(
            r"No transport found for rank \d+",
            r"No path computed to go from \w+/\d+ to",
            r"failed to peer with device \d+",
            r"peer access is not supported between these two devices",
            r"cudaIpc(?:Get|Open)MemHandle failed",
        ),
        blames=("nccl_p2p_level", "nccl_p2p_disable", "nccl_shm_disable"),
        cure="Leave one way open between each pair of ranks: P2P, shared memory, or a network interface.",
        source="NCCL 2.30.7 src/transport.cc selectTransport, src/transport/p2p.cc, src/graph/search.cc",
    ),
    Rule(
        code="N005",
        name="nccl-ranks-share-a-gpu",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"Duplicate GPU detected", r"Multiple Ranks are using the same GPU"),
        cure="Give each rank a GPU of its own: as many visible GPUs as ranks.",
        source="NCCL 2.18 to 2.30 src/init.cc, initTransportsRank",
        is_decisive=True,
    ),
    Rule(
        code="N006",
        name="nccl-invalid-usage",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(r"NCCL error.*invalid (?:usage|argument)", r"\bncclInvalid(?:Usage|Argument)\b"),
        cure="Repeat with NCCL_DEBUG=WARN: the reason then stands above this line.",
        source="NCCL 2.30.7 src/init.cc, ncclGetErrorString; torch 2.11 ProcessGroupNCCL.cpp",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="N007",
        name="nccl-system-error",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(r"unhandled system error", r"\bncclSystemError\b"),
        cure="A system call failed (socket, shared memory, driver library): NCCL_DEBUG=WARN names it above this line.",
        source="NCCL 2.30.7 src/init.cc, ncclGetErrorString",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="N008",
        name="nccl-cuda-error",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(r"unhandled cuda error", r"\bncclUnhandledCudaError\b"),
        cure="A CUDA call inside NCCL failed: NCCL_DEBUG=INFO names it above this line.",
        source="NCCL 2.30.7 src/init.cc, ncclGetErrorString",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="N009",
        name="nccl-remote-ended",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(
            r"remote process exited or there was a network error",
            r"\bncclRemoteError\b",
            r"socketProgress: Connection closed by remote peer",
            r"NCCL communicator was aborted",
        ),
        cure="Read what the other rank said before this line; this one only noticed.",
        source="NCCL 2.30.7 src/init.cc ncclGetErrorString, src/misc/socket.cc",
        priority=Priority.FOLLOW_UP,
    ),
    Rule(
        code="N010",
        name="nccl-internal-error",
        reason=Reason.COLLECTIVE_ERROR,
        any_of=(r"internal error - please report this issue to the NCCL developers", r"\bncclInternalError\b"),
        cure="Try the next NCCL release, or leave out the setting that this trial changed.",
        source="NCCL 2.30.7 src/init.cc, ncclGetErrorString",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="N011",
        name="nvlink-peer-access-broken",
        reason=Reason.DRIVER_OR_HARDWARE,
        any_of=(r"P2P is disabled between NVLINK connected GPUs",),
        cure="NVLink is there and P2P is off: check nvidia-smi nvlink -s, the IOMMU and the Fabric Manager.",
        source="NCCL 2.30.7 src/graph/paths.cc, ncclTopoCheckP2p",
    ),
)
