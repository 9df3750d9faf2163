"""How processes end when no message says why: assertions, signals, silence, and an end without a result."""

import signal

from agent.classify.lines import EXCEPTION_LINE
from agent.classify.rule import NOT_OURS, SILENT, ExitFacts, Priority, Rule
from agent.reasons import Reason
from runners import Phase

_ABORT = int(signal.SIGABRT)
_SENT_BY_OTHERS = tuple(number for number in range(1, 65) if number != _ABORT)
_WAITED = ("deadline", "no_progress")
"""Causes in which the ranks' ends were not the harness's doing: after a hang, it is the harness that kills them."""
_SOURCE = "this project's runner contract 0.1: how the launch's leader ended"

RULES = (
    Rule(
        code="A001",
        name="assertion-failed",
        reason=Reason.ASSERTION,
        any_of=(r"\bAssertionError(?:: |:?$)", r"INTERNAL ASSERT FAILED"),
        none_of=(r"cudaStreamCaptureStatus",),
        cure="A check of the engine failed: report it with this trial's command, which repeats it.",
        source="CPython 3.11 AssertionError; torch 2.13 c10/util/Exception.h, TORCH_INTERNAL_ASSERT",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="P001",
        name="rank-killed-by-signal",
        reason=Reason.PROCESS_KILLED,
        any_of=(r"\brank \d+ died: signal (?P<signal>\d{1,2})\b",),
        exit_facts=ExitFacts(causes=NOT_OURS),
        cure="Signal {signal} ended a rank and nobody here sent it: look in dmesg for the out-of-memory killer.",
        source="this project's torch engine 0.1, the leader's watch over its ranks",
        priority=Priority.SYMPTOM,
        is_decisive=True,
    ),
    Rule(
        code="P002",
        name="process-crashed",
        reason=Reason.PROCESS_KILLED,
        any_of=(r"Fatal Python error: (?:Segmentation fault|Bus error|Illegal instruction|Floating point exception)",),
        cure="Native code crashed: the stack below this line shows the extension; report it with this trial's command.",
        source="CPython 3.11 Modules/faulthandler.c, faulthandler_fatal_error",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="P003",
        name="leader-killed-by-signal",
        reason=Reason.PROCESS_KILLED,
        exit_facts=ExitFacts(signals=_SENT_BY_OTHERS, causes=NOT_OURS),
        cure="A signal that nobody here sent ended the launch: look in dmesg for the out-of-memory killer.",
        source=_SOURCE,
        priority=Priority.BARE,
    ),
    Rule(
        code="P004",
        name="silent-in-a-collective-phase",
        reason=Reason.COLLECTIVE_TIMEOUT,
        phases=(Phase.INIT_DISTRIBUTED, Phase.WARMUP, Phase.SERVE),
        exit_facts=ExitFacts(causes=_WAITED),
        cure="The ranks were waiting for each other, as far as the phase tells: compare their stacks.",
        source=_SOURCE,
        priority=Priority.EXIT,
    ),
    Rule(
        code="P005",
        name="silent-launch",
        reason=Reason.SERVER_HANG,
        exit_facts=ExitFacts(causes=SILENT),
        cure="Compare the stacks of the ranks; a first launch may need longer deadlines for compiling.",
        source=_SOURCE,
        priority=Priority.EXIT,
    ),
    # A process sends SIGABRT to itself, after saying why: whatever it said comes first.
    Rule(
        code="P008",
        name="leader-aborted",
        reason=Reason.PROCESS_KILLED,
        exit_facts=ExitFacts(signals=(_ABORT,), causes=NOT_OURS),
        cure="Native code gave up without a message: repeat with TORCH_SHOW_CPP_STACKTRACES=1.",
        source=_SOURCE,
        priority=Priority.EXIT,
    ),
    # An end in peace without a figure accuses no setting: the client or the harness lost the result until a line
    # says otherwise. benchmark_error is launched again and can never become a dead end; assertion could.
    Rule(
        code="P006",
        name="ended-without-result",
        reason=Reason.BENCHMARK_ERROR,
        exit_facts=ExitFacts(codes=(0,), causes=("exited",)),
        cure="Exit code 0 and no usable measurement: look for the client's output in the trial's folder.",
        source=_SOURCE,
        priority=Priority.EXIT,
    ),
    Rule(
        code="P007",
        name="served-without-result",
        reason=Reason.BENCHMARK_ERROR,
        exit_facts=ExitFacts(causes=("served",)),
        cure="The engine served and no usable measurement came: look for the client's output in the trial's folder.",
        source=_SOURCE,
        priority=Priority.EXIT,
    ),
    Rule(
        code="X001",
        name="exception-without-rule",
        reason=Reason.UNKNOWN,
        any_of=(EXCEPTION_LINE,),
        exit_facts=ExitFacts(causes=NOT_OURS),
        cure="Read the lines shown; when the cause is clear, add a rule with this log as its fixture.",
        source="CPython 3.11 Lib/traceback.py: the last line of a traceback",
        priority=Priority.BARE,
        is_catch_all=True,
    ),
)
