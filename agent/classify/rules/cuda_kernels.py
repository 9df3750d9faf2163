"""Kernels and the device under them: architectures, faults, broken hardware, and figures that are not numbers."""

from agent.classify.rule import Rule
from agent.reasons import Reason

RULES = (
    Rule(
        code="K001",
        name="no-kernel-image",
        reason=Reason.UNSUPPORTED_ARCH,
        any_of=(
            r"no kernel image is available for execution on the device",
            r"device kernel image is invalid",
            r"\bcudaErrorNoKernelImageForDevice\b",
        ),
        cure="Install a build made for this GPU's compute capability (torch.cuda.get_arch_list() shows the build's).",
        source="CUDA 12.8 runtime, cudaErrorNoKernelImageForDevice (209)",
    ),
    Rule(
        code="K013",
        name="triton-finds-no-gpu",
        reason=Reason.UNSUPPORTED_ARCH,
        any_of=(r"\b0 active drivers \(\[\]\)",),
        cure="This path runs Triton kernels, which need a GPU that Triton knows: choose a backend without them, or run "
        "on such a GPU.",
        source="triton 3.6 runtime/driver.py, _create_driver",
    ),
    Rule(
        code="K002",
        name="kernel-fault",
        reason=Reason.KERNEL_ERROR,
        any_of=(
            r"an illegal memory access was encountered",
            r"device-side assert triggered",
            r"\.cu\w*:\d+: .*Assertion .* failed",
            r"Memory access fault by GPU",
            r"an illegal instruction was encountered",
            r"misaligned address",
            r"unspecified launch failure",
            r"CUDA error: invalid configuration argument",
        ),
        cure="Repeat with CUDA_LAUNCH_BLOCKING=1, which makes the traceback show the kernel that failed.",
        source="CUDA 12.8 runtime, error codes 9, 700, 710, 715, 716, 719",
    ),
    Rule(
        code="K003",
        name="gpu-or-driver-broken",
        reason=Reason.DRIVER_OR_HARDWARE,
        any_of=(
            r"uncorrectable (?:NVLink|ECC) error (?:encountered|detected)",
            r"NVRM: Xid",
            r"GPU has fallen off the bus",
            r"GPU is lost",
            r"CUDA driver version is insufficient",
            r"The NVIDIA driver on your system is too old",
        ),
        cure="Read dmesg for Xid lines and nvidia-smi -q for ECC counts; reset or exclude the GPU, update the driver.",
        source="NVIDIA driver 580 (NVRM, Xid 48, 63, 79, 94); CUDA 12.8 codes 35, 214; torch 2.11 CUDAFunctions.cpp",
        is_decisive=True,
    ),
    Rule(
        code="W001",
        name="output-not-finite",
        reason=Reason.WRONG_OUTPUT,
        any_of=(
            r"\b\w+(?:Error|Exception): .*(?:\bNaNs?\b|\bnan\b|non-finite|not finite)",
            r"(?i:\blogits\b.*(?:\bnans?\b|\binf\b|non-finite|not finite))",
            r"(?i:(?:\bnans?\b|non-finite).*\blogits\b)",
            r"probability tensor contains either `inf`, `nan` or element < 0",
        ),
        cure="Compare with allreduce and protocol at their defaults; a protocol the links do not carry corrupts data.",
        source="this project's torch engine; torch 2.11 aten/src/ATen/native/cuda/TensorCompare.cu, torch.multinomial",
    ),
)
