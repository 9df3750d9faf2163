"""How the processes of an engine end: watchdogs, calls without an answer, deaths, and those who only noticed."""

from agent.classify.lines import STOP_ASKED
from agent.classify.rule import NOT_OURS, SILENT, ExitFacts, Priority, Rule
from agent.reasons import Policy, Reason

_NOT_OURS = ExitFacts(causes=NOT_OURS)
_LOOK_ABOVE = "This line only reports it: read what the child or rank said before; without a word, look in dmesg."

RULES = (
    Rule(
        code="P010",
        name="scheduler-watchdog-timeout",
        reason=Reason.COLLECTIVE_TIMEOUT,
        any_of=(
            r"\bTP\d+\S*\] .{0,40}[Ww]atchdog timeout",
            r"(?:RPC call to \w+ timed out|\bRayChannelTimeoutError\b)",
            r"(?i:timed out (?:after [\d.]+ ?s\w* )?waiting for (?:the )?(?:worker|rank|execute|response|object|"
            r"all ranks))",
        ),
        cure="One rank waits for another: compare their stacks; with only graph replays in them try "
        "NCCL_GRAPH_REGISTER=0 "
        "and NCCL_NVLS_ENABLE=0, then another allreduce.",
        source="SGLang 0.3 to 0.5.23 managers/scheduler.py, utils/watchdog.py; vLLM 0.8 to 0.33 multiproc_executor.py; "
        "Ray 2.44 compiled_dag_node.py",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="P011",
        name="engine-gives-no-answer",
        reason=Reason.SERVER_HANG,
        any_of=(
            r"(?:Scheduler|[Ss]oft|\]) ?[Ww]atchdog timeout\b",
            r"(?i:timed out waiting for (?:the )?(?:engine|server|health|scheduler|detokenizer))",
            r"(?i:health check (?:failed|timed out)|did not (?:become ready|respond) (?:with)?in)",
            r"Server .{0,40}(?:didn't|did not) (?:start|respond)|failed to (?:start|respond|become ready) within",
        ),
        none_of=(r"watchdog timeout \d+ s|\bTP\d+\S*\] ",),
        cure="The engine lives and does nothing: take stacks of every process (py-spy dump), and look for the "
        "slowest rank.",
        source="SGLang 0.5.7 to 0.5.23 utils/watchdog.py, http_server.py; vLLM 0.33 v1/engine/core_client.py",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="P019",
        name="timeout-without-rule",
        reason=Reason.SERVER_HANG,
        any_of=(r"\b\w*Timeout(?:Error|Expired)?(?:: |:?$)",),
        exit_facts=_NOT_OURS,
        cure="Something was waited for in vain: take stacks of every process (py-spy dump) while it waits, and "
        "repeat once.",
        source="CPython 3.11 TimeoutError and its kin, raised by whoever waits",
        priority=Priority.BARE,
        is_catch_all=True,
    ),
    Rule(
        code="P012",
        name="child-killed-by-signal",
        reason=Reason.PROCESS_KILLED,
        any_of=(
            r"died unexpectedly \(exit code: -(?P<signal>\d{1,2})\)",
            r"(?i:(?:crashed|exited|died|terminated|failed).{0,40}exit ?code:? -(?P<signal>\d{1,2})\b)",
            r"Failed core proc\(s\): \{.*: -(?P<signal>\d{1,2})",
            r"\bexitcode *: -(?P<signal>\d{1,2}) \(pid",
            r"died with <Signals\.SIG(?:KILL|SEGV|ABRT|BUS|ILL|FPE)",
            r"Caught signal (?P<signal>\d{1,2}) \(",
            r"(?:Segmentation fault|Aborted|Bus error) \(core dumped\)|Segfault encountered",
            r"Fatal Python error: Aborted",
            r"Signal (?P<signal>6|7|8|9|11) \(SIG\w+\) received by PID",
        ),
        exit_facts=_NOT_OURS,
        cure="A signal that nobody here sent ended a process: for 9 look in dmesg for the out-of-memory killer, for "
        "11 and 6 "
        "at the native stack below this line.",
        source="vLLM 0.33 v1/executor/multiproc_executor.py; SGLang 0.5.10 to 0.5.23 SubprocessWatchdog; torch 2.13 "
        "elastic; "
        "UCX 1.17",
        priority=Priority.BARE,
    ),
    Rule(
        code="P013",
        name="actor-died",
        reason=Reason.PROCESS_KILLED,
        any_of=(
            r"The actor (?:is dead|died) (?:unexpectedly )?because",
            r"worker died or was killed while executing",
            r"\b(?:ActorDiedError|RayActorError|WorkerCrashedError|NodeDiedError)\b",
        ),
        exit_facts=_NOT_OURS,
        cure="Ray lost a worker: its own log and dmesg on that node tell whether memory, a signal or a crash took it.",
        source="Ray 2.9 to 2.60 python/ray/exceptions.py, raylet messages",
        priority=Priority.BARE,
    ),
    Rule(
        code="P014",
        name="somebody-noticed-a-death",
        reason=Reason.PROCESS_KILLED,
        any_of=(
            r"engine core exited unexpectedly|Engine core proc \S+ died unexpectedly|died unexpectedly",
            r"\bEngineDeadError\b|\bMQEngineDeadError\b|EngineCore encountered (?:a fatal error|an issue)",
            r"Engine (?:core|process) (?:initialization )?failed|Engine process failed to start",
            r"WorkerProc (?:initialization failed|failed to start|hit an exception)|EngineCore failed to start",
            r"Worker failed with error|\bcancelled$|CancelledError",
            r"Received sigquit from a child process|SIGQUIT received|child failed",
            r"Rank \d+ scheduler (?:is dead|died)|Child process unexpectedly failed|Exit code: \d",
            r"(?:sglang|RPCServer|engine) (?:sub)?process (?:exited|died)",
            r"AsyncLLM output_handler failed|AsyncEngineDeadError|Background loop has errored",
            r"Process group watchdog thread terminated with exception|terminate called after throwing",
            r"\bChildFailedError\b|worker processes, shutting down|EOFError$|BrokenPipeError",
            r"'\w*Executor' object has no attribute|RuntimeError: Executor failed\.",
            r"\bKilled$",
        ),
        cure=_LOOK_ABOVE,
        source="vLLM 0.4 to 0.33 v1/engine, v1/executor; SGLang 0.3 to 0.5.23 entrypoints/engine.py; torch 2.13 "
        "elastic",
        priority=Priority.FOLLOW_UP,
    ),
    Rule(
        code="P017",
        name="stacks-stand-in-a-collective",
        reason=Reason.COLLECTIVE_TIMEOUT,
        stacks=(
            r"(?i:\b(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|barrier)\w* \()",
            r"distributed_c10d\.py|pynccl\w*\.py|\bnccl(?:AllReduce|AllGather|GroupEnd|CommInitRank)|libgloo|gloo::",
        ),
        exit_facts=ExitFacts(causes=("deadline", "no_progress")),
        blames=("allreduce",),
        cure="The ranks wait in a collective: the one whose stack differs is the one to look at; try NCCL only.",
        source="py-spy 0.4 dump; torch 2.13 torch/distributed/distributed_c10d.py; vLLM 0.33 and SGLang 0.5.23 "
        "pynccl.py",
        priority=Priority.EXIT,
    ),
    Rule(
        code="P018",
        name="stacks-stand-in-a-compiler",
        reason=Reason.SERVER_HANG,
        stacks=(r"triton/(?:compiler|runtime/build)|torch/_inductor|flashinfer/jit|cpp_extension\.py|deep_gemm/jit",),
        exit_facts=ExitFacts(causes=("deadline", "no_progress")),
        cure="It was still compiling: a slow start and no hang; allow more time for a first start and keep the caches.",
        source="py-spy 0.4 dump; triton 3.6, torch 2.13, FlashInfer 0.6: modules that only compile",
        priority=Priority.EXIT,
    ),
    Rule(
        code="P015",
        name="silent-in-peer-access-check",
        reason=Reason.SERVER_HANG,
        last_words=(r"generating GPU P2P access cache|gpu_p2p_access|All Reduce config",),
        exit_facts=ExitFacts(causes=SILENT),
        blames=("allreduce",),
        cure="Peer access between these GPUs hangs (often the IOMMU): switch custom all-reduce off, or "
        "NCCL_P2P_DISABLE=1.",
        source="vLLM 0.4 to 0.33 custom_all_reduce_utils.py, gpu_p2p_access_check",
        priority=Priority.EXIT,
    ),
    Rule(
        code="P016",
        name="silent-while-compiling",
        reason=Reason.SERVER_HANG,
        last_words=(r"Dynamo bytecode transform|for vLLM's torch\.compile|Memory pool end|JIT|DeepGEMM warmup",),
        exit_facts=ExitFacts(causes=SILENT),
        cure="Kernels are compiled here on a first start: while a compiler burns CPU it is slow and not hung, so allow "
        "minutes and keep the caches; with an idle CPU take stacks.",
        source="vLLM 0.7 to 0.33 compilation/backends.py; SGLang 0.5.16: the first graph capture compiles kernels",
        priority=Priority.EXIT,
    ),
    # A server that is told to stop ends in peace, with exit code 0. A signal is nobody's setting: launched again.
    Rule(
        code="P009",
        name="told-to-stop-by-somebody",
        reason=Reason.PROCESS_KILLED,
        any_of=STOP_ASKED[:3],
        exit_facts=ExitFacts(codes=(0,), causes=("exited",)),
        cure="Somebody asked the engine to end (kill, a container or job manager, a shutdown): nobody here did.",
        source="vLLM 0.33 v1/engine/core.py; SGLang 0.5.23 managers/tokenizer_manager.py; uvicorn 0.30",
        priority=Priority.BARE,
        reads_benign=True,
        needs_watch=True,
        own_policy=Policy.RETRY_OURS,
    ),
)
