"""The last resort before "unknown": an exception that no rule knows, and what it talks about.

A message that speaks of memory, of a checkpoint or of a timeout is of that kind far more often than not, whatever its
exact words. These rules have the rank of an exception that nobody knows: any other one explains the line better.
"""

from agent.classify.rule import Priority, Rule
from agent.reasons import Policy, Reason

_RAISED = r"(?:Error|Exception)\b.*"
_FOLLOWS = (
    r"terminated with exception|terminate called|Worker failed with|EngineCore|Engine (?:core|process)|Capture cuda"
)
_SOURCE = "CPython 3.11 tracebacks of torch 2.13, vLLM 0.33, SGLang 0.5.23: the subject of a message, not its words"


def _about(code: str, name: str, reason: Reason, subject: str, cure: str, *, none_of: tuple[str, ...] = ()) -> Rule:
    """A rule for exceptions whose message is about a subject."""
    return Rule(
        code=code,
        name=name,
        reason=reason,
        any_of=(_RAISED + subject,),
        none_of=(_FOLLOWS, *none_of),
        cure=cure,
        source=_SOURCE,
        priority=Priority.BARE,
        own_policy=Policy.CONFIRM_ONCE,  # a guess by subject never rules anything out by itself
    )


RULES = (
    _about(
        "Y001",
        "message-about-gpu-memory",
        Reason.GPU_OOM,
        r"(?i:out of (?:device |gpu )?memory|outofmemory|(?:allocat\w+|insufficient|not enough|free|desired|"
        r"exceeds?).{0,60}"
        r"\bmemory|\bmemory.{0,60}(?:allocat|insufficient|not enough|less than|exceed)|ALLOC_FAILED|"
        r"KV ?cache.{0,40}memory)",
        "Leave more memory free: a lower share for the KV cache, smaller batches, or more ranks.",
        none_of=(r"(?i:illegal|\bhost\b|\bcpu\b|cannot allocate|errno 12|memory access|leak|shared memory)",),
    ),
    _about(
        "Y002",
        "message-about-host-memory",
        Reason.HOST_OOM,
        r"(?i:(?:\bhost\b|\bcpu\b|shared|pinned).{0,40}memory|cannot allocate memory|errno 12\b)",
        "Free host memory, or raise the container's limits for memory and /dev/shm.",
        none_of=(r"(?i:illegal|resides|device-side|same device)",),
    ),
    _about(
        "Y003",
        "message-about-a-timeout-between-ranks",
        Reason.COLLECTIVE_TIMEOUT,
        r"(?i:(?:timed? ?out|timeout).{0,120}(?:\brank|nccl|collective|store|\bkeys?\b|worker|execute_model|rpc|"
        r"barrier)|"
        r"(?:\brank|nccl|collective|store|worker|rpc call).{0,120}(?:timed? ?out|timeout))",
        "A rank waits for another: compare their stacks, and repeat once.",
    ),
    _about(
        "Y004",
        "message-about-model-files",
        Reason.MODEL_LOAD,
        r"(?i:\b(?:checkpoint|safetensors|state_dict|weights? (?:file|named|for)|tokenizer|"
        r"config(?:uration)? (?:file|format)|"
        r"snapshot folder|module or parameter|shard)\b)",
        "The files of the model or draft are not what the engine expects: check them against the hub's.",
        none_of=(r"(?i:\bCUDA\b|timed? ?out|memory|quantiz|compile)",),
    ),
    _about(
        "Y005",
        "message-about-the-architecture",
        Reason.UNSUPPORTED_ARCH,
        r"(?i:\b(?:compute capability|gpu arch\w*|sm_?\d{2,3}\b|kernel image|device capability))",
        "This GPU's architecture is probably not what the kernel was made for: another backend or build.",
    ),
    _about(
        "Y006",
        "message-about-an-address",
        Reason.PORT_OR_STALE_PROCESS,
        r"(?i:\b(?:EADDRINUSE|address already|errno 98|server socket has failed to listen|port \d+\b.{0,40}(?:use|"
        r"busy|taken)))",
        "A port is taken: end the process that holds it, or choose another one.",
    ),
    _about(
        "Y007",
        "message-about-imports",
        Reason.MISSING_DEPENDENCY,
        r"(?i:no module named|cannot import|undefined symbol|shared object file|package metadata|not installed)",
        "A package is missing or of the wrong version: install what the line names.",
        none_of=(r"(?i:\bignor)",),
    ),
    _about(
        "Y008",
        "message-about-compiling",
        Reason.JIT_COMPILE_ERROR,
        r"(?i:\b(?:compil\w+ (?:error|fail)|nvcc|ptxas|ninja|codegen|triton/cache|cuda_utils\.cpython)|"
        r"CompilationError)",
        "A kernel did not compile: toolkit, compiler and headers must fit torch; or choose a backend without it.",
        none_of=(r"torch\.compile",),
    ),
    _about(
        "Y009",
        "message-about-the-driver",
        Reason.DRIVER_OR_HARDWARE,
        r"(?i:\b(?:nvidia driver|ECC error|no cuda gpus|nvml|driver version|hardware error))",
        "Look at nvidia-smi and dmesg: the driver or a GPU does not work.",
    ),
    _about(
        "Y010",
        "message-about-shapes",
        Reason.ASSERTION,
        r"(?i:\b(?:size of tensor|shapes?\b.{0,80}(?:invalid|mismatch|match|multiplied|broadcast)|"
        r"non-singleton dimension|dtype))",
        "Tensors of two parts of the engine do not fit each other: report it, and try the setting's neighbours.",
    ),
)
