"""Kernels compiled at run time: Triton, nvcc and ninja, Inductor, FlashInfer, DeepGEMM."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Policy, Reason

_CACHE = r"(?i:triton|inductor|torch_?compile|flashinfer|deep_?gemm|tvm.?ffi|torch_extensions|nv/ComputeCache)"

RULES = (
    Rule(
        code="J001",
        name="triton-kernel-does-not-compile",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(
            r"\btriton\.compiler\.errors\.\w+",
            r"\bCompilationError: at \d+:\d+",
            r"\btriton\.runtime\.errors\.\w+",
            r"PassManager::run failed",
            r"\bUnsupportedLanguageConstruct\b",
            r"Triton compilation failed",
            r"\btriton\.runtime\.autotuner\.OutOfResources\b|out of resource: shared memory",
        ),
        cure="Another dtype, block size or backend avoids this kernel; otherwise install the Triton the engine was "
        "made for.",
        source="triton 2.1 to 3.6 python/triton/compiler/errors.py, compiler/code_generator.py, runtime/errors.py",
    ),
    Rule(
        code="J002",
        name="compiler-run-failed",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(
            r"CalledProcessError: Command .*(?:gcc|g\+\+|clang|nvcc|ninja|ptxas|hipcc|c\+\+|/cc)\b.*(?:non-zero|died)",
            r"ninja: build stopped",
            r"Error (?:building extension|compiling objects for extension)",
            r"\bnvcc (?:fatal|error)\b",
            r"\bptxas (?:fatal|error)\b|PTX assembly aborted|Internal Triton PTX codegen error",
            r"\.(?:cu|cuh|cpp|cc|h|hpp|inl)(?::\d+:\d+:|\(\d+\):) (?:fatal )?error:? ",
            r"(?i:\bnvrtc(?:_error|: error| compilation| error)|NVRTC.{0,40}fail)",
            r"\bLLVM ERROR\b",
            r"(?i:(?:jit|kernel|nvcc|cuda) compil\w+ (?:failed|error))",
            r"(?i:failed to (?:jit.?)?compile\b)",
            r"Assertion (?:error|failed).*(?:deep_gemm|jit/)\S*compiler",
        ),
        none_of=(r"(?i:skipping)", r"^\s*File ", r"Feature '"),
        cure="The compiler's own message stands above or in this line: headers, a CUDA toolkit that fits torch, or "
        "gcc's "
        "version; stale caches of an ended launch can be removed.",
        source="torch 2.1 to 2.13 utils/cpp_extension.py; triton runtime/build.py; FlashInfer 0.2 to 0.6 "
        "jit/cpp_ext.py; "
        "DeepGEMM 2.0 csrc/jit/compiler.hpp",
    ),
    Rule(
        code="J003",
        name="compiler-missing",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(
            r"CUDA_HOME (?:environment variable )?is not set|(?i:could not find (?:nvcc|CUDA_HOME|a? ?cuda toolkit))",
            r"(?i:failed to find (?:a )?C(?:\+\+)? compiler|no C(?:\+\+)? compiler (?:was )?found)",
            r"Ninja is required to load C\+\+ extensions",
            r"No such file or directory: '[^']*(?:nvcc|ninja|gcc|g\+\+|ptxas|cuobjdump)'",
            r"(?:nvcc|ninja|gcc|g\+\+): (?:command )?not found",
        ),
        cure="Install the CUDA toolkit that fits torch, a C++ compiler, ninja and the Python headers, and set "
        "CUDA_HOME.",
        source="torch 2.1 to 2.13 utils/cpp_extension.py; triton 3.6 runtime/build.py; FlashInfer 0.6 jit/",
    ),
    Rule(
        code="J004",
        name="inductor-failed",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(r"\bInductorError\b", r"torch\._inductor\.exc\.\w+", r"\bLoweringException\b", r"\bCppCompileError\b"),
        cure="Compile less (-O0, --enforce-eager, without --enable-torch-compile), or use the torch the engine pins.",
        source="torch 2.4 to 2.13 torch/_inductor/exc.py",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="J005",
        name="compile-cache-race",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(
            r"(?:FileNotFoundError|OSError|FileExistsError|PermissionError|JSONDecodeError): .*"
            + _CACHE
            + r".*(?:cache|tmp|lock)",
            r"Stale file handle.*" + _CACHE,
        ),
        none_of=(r"No space left|quota exceeded", r"(?:nvcc|ninja|gcc)'"),
        cure="Two processes wrote the same compile cache, or it is damaged: remove it, warm it with one rank, "
        "launch again.",
        source="triton 2.1 to 3.6 runtime/cache.py FileCacheManager.put; torch 2.13 _inductor/codecache.py",
        own_policy=Policy.RETRY_ONCE,
    ),
    Rule(
        code="J006",
        name="graph-compiler-gave-up",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(r"\bBackendCompilerFailed\b", r"torch\._dynamo\.exc\.\w+"),
        cure="The cause follows this line; without one, compile less (-O0, --enforce-eager).",
        source="torch 2.1 to 2.13 torch/_dynamo/exc.py",
        priority=Priority.WRAPPER,
    ),
    Rule(
        code="J007",
        name="exception-inside-a-compiler",
        reason=Reason.JIT_COMPILE_ERROR,
        any_of=(r"\b(?:[A-Za-z]+Error)(?:: |\(|:?$)",),
        none_of=(r"(?:ModuleNotFound|Import|Memory|Assertion)Error", r"out of memory|No space left|quota exceeded"),
        frame=(
            r"triton/(?:compiler|backends|runtime/build)",
            r"torch/(?:_inductor|_dynamo|utils/cpp_extension)",
            r"flashinfer/jit|(?:deep_gemm|sglang)/jit|tvm_ffi/cpp|tilelang/|cutlass/base_dsl",
        ),
        cure="A kernel's compiler failed: another backend avoids it; versions of Triton, CUDA and torch must fit.",
        source="triton 3.6, torch 2.13, FlashInfer 0.6: modules that only compile",
        priority=Priority.SYMPTOM,
    ),
)
