"""GPU architectures that a kernel is not made for; drivers and devices that do not work; further CUDA errors."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason

RULES = (
    Rule(
        code="U001",
        name="architecture-unsupported",
        reason=Reason.UNSUPPORTED_ARCH,
        any_of=(
            r"(?i:requires? .{0,60}(?:compute capability|capability >|\bsm_?\d{2,3}\b|Hopper|Blackwell|Ampere))",
            r"(?i:only (?:supports?|supported|available|works?|runs?|implemented|compatible).{0,50}"
            r"(?:compute capability|\bsm_?\d{2,3}\b|Hopper|Blackwell|Ampere|H100|B200))",
            r"(?i:not (?:yet )?(?:supported|implemented|compatible|available) (?:on|in|for|with) .{0,40}"
            r"(?:current GPU|this GPU|this device|compute capability|\bsm_?\d{2,3}\b|GPU arch|architecture))",
            r"No supported CUDA architectures|on (?:Ampere|Ada|Hopper|Blackwell)\S* .{0,20}only supports",
            r"No compiled \w+ for (?:a |this )?(?:compute )?capability",
            r"with CUDA capability sm_\d+ is not compatible",
            r"(?i:minimum capability|capability \(?\d+, ?\d+\)? \(too old\)|(?:device|"
            r"compute) capability .{0,30}not supported)",
            r"(?i:unsupported (?:gpu |cuda |compute |device )?(?:arch\w*|compute capability|SM version|sm_?\d\d))",
            r"Feature '.*' (?:requires|not supported on) \.target",
            r"Unknown cases: .*arch=",
        ),
        none_of=(
            r"(?i:expert|eplb)",
            r"UserWarning|Performance might|Model architectures",
            r"(?i:fall(?:ing)? ?back|skipp(?:ed|ing)|disabling|is disabled|using .* instead|will (?:be|use))",
        ),
        cure="This kernel or backend is not made for this GPU: choose another backend, or a build for its capability.",
        source="vLLM 0.4 to 0.33, SGLang 0.3 to 0.5.23, FlashInfer 0.6, xformers 0.0.28, DeepGEMM 2.0; CUDA 12.8 "
        "ptxas, nvcc",
    ),
    Rule(
        code="U002",
        name="architecture-missing-in-table",
        reason=Reason.UNSUPPORTED_ARCH,
        any_of=(r"\bKeyError: '?\(?\d{1,3}(?:[., ]+\d)?\)?'?\s*$", r"\bIndexError: map::at\b"),
        above=(r"symm_mem\w*\.py|all_reduce_utils\.py|capability|triton/backends|triton/compiler",),
        blames=("allreduce",),
        cure="A table keyed by compute capability has no row for this GPU: choose another backend, or a newer engine.",
        source="SGLang 0.5.3 to 0.5.13 torch_symm_mem.py; triton 2.x and 3.0 NVIDIA back end, ComputeCapability tables",
        # A table in the software's own code: a newer toolkit or driver adds no row to it.
        depends_on=("gpu_arch", "engine_version"),
    ),
    Rule(
        code="K010",
        name="driver-does-not-work",
        reason=Reason.DRIVER_OR_HARDWARE,
        any_of=(
            r"(?i:driver/library version mismatch|failed to initialize NVML|NVML_ERROR_\w+|nvmlInit\w* failed)",
            r"(?i:nvidia-smi has failed|couldn't communicate with the NVIDIA driver|nvidia-container-cli: .*error)",
            r"(?i:system not yet initialized|system has unsupported display driver)",
            r"\bcudaError(?:SystemNotReady|SystemDriverMismatch|InsufficientDriver|NoDevice|ECCUncorrectable|"
            r"HardwareStackError)\b",
            r"\bCUDA_ERROR_(?:SYSTEM_\w+|NO_DEVICE|ECC_\w+|HARDWARE_\w+|NOT_INITIALIZED|UNKNOWN)\b",
            r"no CUDA-capable device is detected|forward compatibility was attempted on non supported HW",
            r"CUDA unknown error|CUDA error: unknown error|CUDA error: initialization error",
            r"(?i:is/are busy or unavailable)",
            r"(?:Failed to infer device type|cannot detect any (?:CUDA|GPU) device|No (?:supported )?(?:GPU|"
            r"CUDA) devices? (?:was |were )?found)",
            r"(?i:hardware (?:error|failure)|nvlink (?:fatal|error|failure))",
        ),
        cure="nvidia-smi must work in this environment: driver and container runtime of one version, Fabric Manager "
        "running "
        "on NVSwitch nodes, dmesg free of Xid lines.",
        source="NVIDIA driver 580 NVML; CUDA 12.8 codes 3, 46, 100, 802 to 804, 999; vLLM 0.33 platforms/__init__.py",
    ),
    Rule(
        code="K011",
        name="cuda-call-failed",
        reason=Reason.KERNEL_ERROR,
        any_of=(
            r"\b(?:CUDA|CUDART|HIP)(?: driver| runtime)? error:? ",
            r"\b(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT|HIPBLAS)_STATUS_[A-Z_]+",
            r"(?i:cudnn error|cublas error|cublasLt?\w* failed)",
            r"Triton Error \[CUDA\]|pointer resides on host memory",
            r"\bcudaError[A-Z]\w+|\bCUDA_ERROR_[A-Z_]+|\bhipError[A-Z]\w+",
            r"failed with error (?:code )?(?:invalid|unspecified|an illegal|misaligned|too many|unknown|operation)",
            r"\bCuda error\b.*'",
            r"(?i:cutlass.{0,60}(?:error internal|failed|invalid problem|kErrorInternal))",
        ),
        none_of=(
            r"(?i:out of memory|ALLOC_FAILED|cudaErrorMemoryAllocation)",
            r"Search for .cudaError",
            r"(?i:during capture|capturing|StreamCapture|due to a previous error)",
        ),
        cure="Repeat with CUDA_LAUNCH_BLOCKING=1, which makes the traceback show the call that failed.",
        source="CUDA 12.8 runtime, cuBLAS and cuDNN 9 status codes; torch 2.13 c10/cuda/CUDAException.cpp; triton 3.6",
        priority=Priority.GENERAL,
    ),
)
