"""Memory as the engines plan it: KV cache, workspaces, and what others hold of the GPU."""

import signal

from agent.classify.rule import ExitFacts, Priority, Rule
from agent.reasons import Policy, Reason

_LOADING = r"(?i:safetensors|checkpoint shards|load weight begin|starting to load model|load_weights|\bmmap\b)"

RULES = (
    Rule(
        code="M010",
        name="kv-cache-does-not-fit",
        reason=Reason.GPU_OOM,
        any_of=(
            r"No available memory for the cache blocks",
            r"larger than the (?:available KV cache memory|maximum number of tokens that can be stored in KV cache)",
            r"KV cache is needed, which is larger than",
            r"Not enough (?:GPU )?memory\b.{0,40}(?:mem-fraction-static|KV|cache|pool)",
            r"(?:Prefill|Decode|Extend) out of memory\. Try to lower your batch size",
            r"(?:not enough|insufficient) .{0,30}(?:KV|kv) ?cache",
            r"max_total_num_tokens.{0,40}(?:too small|must be|is less|<= ?0)",
        ),
        blames=("mem_fraction_static", "gpu_memory_utilization", "max_model_len"),
        cure="Give the KV cache more (a higher memory share, more ranks, a smaller model) or ask less of it (context, "
        "batch); a share above what is free needs the GPU to be empty first.",
        source="vLLM 0.4 to 0.33 v1/core/kv_cache_utils.py, worker/utils.py; SGLang 0.3 to 0.5.23 model_runner.py",
    ),
    Rule(
        code="M020",
        name="gpu-not-free-enough",
        reason=Reason.GPU_OOM,
        any_of=(r"Free memory on device .* is less than desired GPU memory utilization",),
        blames=("gpu_memory_utilization",),
        cure="Somebody holds a part of the GPU, perhaps an earlier launch: end it, or ask for a smaller share.",
        source="vLLM 0.8 to 0.33 v1/worker/gpu_worker.py and utils.py request_memory",
        own_policy=Policy.RETRY_ONCE,  # what others held may be free by then
    ),
    Rule(
        code="M011",
        name="host-memory-below-request",
        reason=Reason.HOST_OOM,
        any_of=(
            r"Available memory on node \d+ .* is less than",
            r"(?i:not enough (?:host|CPU|system) memory)",
            r"(?i:exceeds (?:the )?(?:available )?(?:host|CPU|system) memory)",
            r"Failed to allocate (?:pinned|host) memory|cudaErrorHostMemory\w+|cudaHost(?:Alloc|Register)\b.*failed|"
            r"memory.*cudaHost(?:Alloc|Reg)",
            r"Error while creating shared memory segment",
            r"node running low on memory|ray\.exceptions\.OutOfMemoryError",
            r"unable to mmap \d+ bytes",
            r"DefaultCPUAllocator: not enough memory",
        ),
        none_of=(r"No space left on device",),
        cure="Ask for less host memory (KV share on CPU, offloading, swap space, ranks) or raise the container's limit "
        "and its --shm-size.",
        source="vLLM 0.32 v1/worker/cpu_worker.py; SGLang 0.5.23 mem_cache/memory_pool_host.py; NCCL 2.21 shmutils.cc; "
        "Ray 2.60 memory monitor",
    ),
    Rule(
        code="M012",
        name="kernel-workspace-does-not-fit",
        reason=Reason.GPU_OOM,
        any_of=(
            r"Failed to allocate memory for \w+ with size \d+ and alignment",
            r"(?i:workspace (?:buffer )?(?:size )?.{0,30}(?:too small|insufficient|not enough|overflow))",
        ),
        cure="Enlarge the backend's workspace (FLASHINFER_WORKSPACE_SIZE, SGLANG_FLASHINFER_WORKSPACE_SIZE) or "
        "batch less.",
        source="FlashInfer 0.1 to 0.6 include/flashinfer/allocator.h, AlignedAllocator",
    ),
    Rule(
        code="M013",
        name="allocation-failed-behind-stable-interface",
        reason=Reason.GPU_OOM,
        any_of=(r"\"aten::(?:new_)?(?:empty|zeros|full)\w*\".*API call failed",),
        cure="The allocator's own message is hidden here: leave more memory free for work at run time (a lower share).",
        source="torch 2.10 torch/csrc/stable/ops.h: a failed allocation comes back as a failed API call",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="M014",
        name="bus-error-while-weights-load",
        reason=Reason.HOST_OOM,
        any_of=(r"Fatal Python error: Bus error", r"exit code:? (?:-7|135)\b", r"Exit code: -(?P<signal>7)\b"),
        above=(_LOADING,),
        cure="A mapped page could not be provided: the container's memory or /dev/shm is too small, or the weights' "
        "file "
        "was cut while it was read.",
        source="Linux 6.8 mm/filemap.c and mm/shmem.c (SIGBUS); CPython 3.11 faulthandler",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="M015",
        name="memory-held-by-others",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(
            r"memory capacity is unbalanced",
            r"Error in memory profiling\. Initial free memory",
        ),
        cure="Other processes hold or release memory of these GPUs: end what an earlier launch left (nvidia-smi).",
        source="SGLang 0.3 to 0.5.23 model_runner.py init_torch_distributed; vLLM 0.6 to 0.33 gpu_worker.py",
    ),
    Rule(
        code="M016",
        name="killed-for-memory-while-loading",
        reason=Reason.HOST_OOM,
        any_of=(
            r"scheduler died during initialization \(exit code: -9\)",
            r"This is often caused by the OOM killer|(?:likely|probably) (?:killed by|due to|caused by) (?:the )?OOM",
        ),
        none_of=(r"potential root causes",),
        cure="The kernel most likely ended it for memory (see dmesg): fewer ranks or loader threads, or more host "
        "memory.",
        source="SGLang 0.5.10 to 0.5.23 entrypoints/engine.py, _wait_for_scheduler_ready",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="M017",
        name="out-of-memory-and-killed",
        reason=Reason.HOST_OOM,
        any_of=(r"(?i:\bOOMKilled\b)", r"(?i:container .{0,40}(?:exceeded|over) (?:its )?memory limit)"),
        exit_facts=ExitFacts(signals=(int(signal.SIGKILL),)),
        cure="The container's memory limit ended it: raise the limit, or load with fewer ranks at once.",
        source="Kubernetes 1.30 container status reason OOMKilled, exit code 137",
        priority=Priority.GENERAL,
    ),
)
