"""Kinds of lines that need no rule to be recognised: harmless ones, ones worth showing, and ends of a launch's "
"phases."""

from runners import Phase

EXCEPTION_LINE = (
    r"(?:^|[\s\]|(])(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*)?"
    r"(?:Error|Exception|Interrupt|Failure|Failed|Timeout|NotFound)(?:\(\w*\))?(?:: |:?$|\(['\"])"
)
"""The last line of a Python traceback, with or without a logger's prefix."""

_PREFIX = r"(?:.{0,60}(?:\| |\]: ))?(?:\([^)]{1,80}\) ?){0,2}"
_STAMP = r"(?:\[?\d{4}-\d\d-\d\d[ T][\d:.,]+Z?[^\]]{0,20}\]?:? ?(?:- )?)?"

BENIGN = (
    r"\b(?:0|no|zero) (?:\w+ )?(?:errors?|failures?)\b",
    r"\b(?:errors?|failures?)['\"]?\s*[:=]\s*0\b",
    r"^\s*(?:export |set )?[A-Z][A-Z0-9_]+=\S*$",
    r"\b(?:Future|User|Deprecation|Runtime|Resource|Import|Syntax)Warning\b",
    r"(?:^|\] |\) )\s*(?:raise|except) \w",
    r"(?:^|\] |\) )\s{2,}(?:assert|return|if|elif|with|await|async|self\.|from|import|def|class) ?\S",
    rf"^{_PREFIX}(?:INFO|WARNING|DEBUG) \d\d-\d\d",
    rf"^{_STAMP}(?:INFO|WARNING|DEBUG|INFO -|WARNING -)[: -]",
    r"\] (?:INFO|WARNING|DEBUG):",
    r"\bNCCL INFO\b",
    r"(?:ErrorHandling|error_handling|ERROR_HANDLING)",
    r"(?i:\bignor(?:e|ed|ing)\b.*\berror|\berrors?\b.*\bignor(?:e|ed|ing)\b|please ignore)",
    r"(?:Failed to load|Error retrieving|failed to (?:get|read)) generation config|"
    r"Proceeding without generation config",
    r"(?i:fail\w* .*fall(?:ing)? ?back|- retrying\b|\bretrying in\b|will retry)",
    r"Fail(?:ed)? to set RLIMIT|failed to automatically increase",
    r"Config file not found at|Performance might be sub-optimal",
    r"(?:Setup Custom allreduce failed|[Cc]ustom ?(?:allreduce|all-reduce|AllReduce) is disabled)",
    r"ras/client_support",
    r"^\[W\d{3,4} |Cannot use FA version|thrown while requesting|\[Retry \d+/\d+\]",
    r"errno: 97 - Address family not supported",
    r"There appear to be \d+ leaked",
    r"Triton not available|not installed, (?:skipping|using)|is not installed\. (?:Falling|Using|Skipping)",
    r"server_args=ServerArgs\(|non-default args:|Initializing a V\d LLM engine",
    r"For debugging consider passing|might be asynchronously reported|Compile with `TORCH_USE_CUDA_DSA`",
    r"^(?:Possible solutions:|\d\. (?:set|disable) -)",
)
"""Lines of a healthy launch, or of quoted source, that only look like failures: never evidence for any rule."""

TELLING = (
    EXCEPTION_LINE,
    r"(?i)\b(?:fatal|panic|abort(?:ed|ing)?|core dumped|segmentation fault|terminate called)\b",
    r"(?i)\b(?:error|failed|failure|cannot|unable to)\b",
)
"""Lines worth showing when no rule knows them, most telling first."""

READY = (
    r"The server is fired up and ready to roll",
    r"\bApplication startup complete\b",
)
"""A launch that says this has survived whatever stands above it. Source: SGLang 0.5.23, uvicorn 0.30 and later."""

STOP_ASKED = (
    r"\btrigger received signal=SIG(?:TERM|INT)\b",
    r"\bSIG(?:TERM|INT) received\b",
    r"\b[Rr]eceived (?:signal (?:15|2)\b|SIG(?:TERM|INT)\b|exit signal)",
    r"^\^C",
)
"""Somebody asked for the end: what processes say afterwards about each other is part of it."""

PHASES = (
    (r"Init (?:torch distributed|parallel) begin|world_size=\d+ rank=\d+|vLLM is using nccl", Phase.INIT_DISTRIBUTED),
    (r"\[torch_engine [\d.]+\] rank=\d+ phase=init_distributed", Phase.INIT_DISTRIBUTED),
    (
        r"ncclCommInitRank\w* comm|Found nccl from library|Connected all (?:rings|trees)|"
        r"generating GPU P2P access cache",
        Phase.INIT_DISTRIBUTED,
    ),
    (r"Load weight begin|Starting to load model|checkpoint shards:|Loading weights", Phase.LOAD_WEIGHTS),
    (r"Load weight end|Model loading took|Memory profiling takes", Phase.ALLOC_KV),
    (r"KV Cache is allocated|KV cache size: |# GPU blocks:", Phase.ALLOC_KV),
    (r"Memory pool end|Dynamo bytecode transform|for vLLM's torch\.compile|torch\.compile takes", Phase.COMPILE),
    (r"(?:Start|Finish)ed? (?:to )?(?:build|load)\w* JIT|Loading JIT ops|DeepGEMM warmup|JIT [Cc]ompil", Phase.COMPILE),
    (r"Capture .{0,24}(?:cuda|CUDA) graph begin|Capturing (?:batches|CUDA graph)", Phase.CAPTURE_GRAPHS),
    (r"Graph capturing finished|Capture (?:target (?:decode|verify) )?(?:cuda|CUDA) graph end", Phase.WARMUP),
    (r"init engine \(profile, create kv cache|Application startup complete|Uvicorn running on", Phase.READY),
    (r"The server is fired up and ready to roll", Phase.READY),
    (r"\"POST /(?:v1/\w+|generate)|Decode batch|Avg generation throughput|HTTP/1\.[01]\" 200", Phase.SERVE),
    (r"Automatically detected platform|server_args=ServerArgs|Started server process|API server version", Phase.SPAWN),
    (r"Initializing an? (?:V\d )?LLM engine|(?:INFO|DEBUG|WARNING) \d\d-\d\d \d\d:\d\d|core engine proc", Phase.SPAWN),
    (r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [TDPE]P\d+)*\]", Phase.SPAWN),
)
"""What a line says about the phase that begins with it. Source: SGLang 0.5.1 to 0.5.23, vLLM 0.4 to 0.33."""
