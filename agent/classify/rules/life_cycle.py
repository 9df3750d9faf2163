"""What this project's own life cycle writes into a server's log: it saw something that the server did not say."""

from agent.classify.rule import NOT_OURS, ExitFacts, Priority, Rule
from agent.reasons import Reason

_SOURCE = "this project's runners 0.1: lifecycle.py, server_session.py, server_runner.py"

RULES = (
    Rule(
        code="F001",
        name="engine-process-died",
        reason=Reason.PROCESS_KILLED,
        any_of=(r"^\[lifecycle\] \S+ \(pid \d+\) died$",),
        exit_facts=ExitFacts(causes=NOT_OURS),
        cure="A process of the engine ended without a word of its own: look in dmesg for the out-of-memory killer.",
        source=_SOURCE,
        priority=Priority.BARE,
    ),
    Rule(
        code="F002",
        name="port-of-another-server",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(r"^\[lifecycle\] port \d+ is served by another process",),
        cure="Another program took the engine's port in the same moment; the launch is repeated on another one.",
        source=_SOURCE,
    ),
    Rule(
        code="F003",
        name="engine-process-stopped",
        reason=Reason.SERVER_HANG,
        stacks=(r"-- thread \d+ .{0,20}: T \(stopped\)",),
        exit_facts=ExitFacts(causes=("deadline", "no_progress")),
        cure="Somebody stopped a process of the engine (SIGSTOP, a debugger, a frozen container): let it go on.",
        source=_SOURCE + "; proc(5) of Linux 6.1, state T",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="F004",
        name="launch-refused-by-agent",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"^agent: error: .{0,200}?(?P<option>--[a-z][\w-]+)",
            r"^agent: error: ",
        ),
        none_of=(r"has no (?:sglang|vllm)|cannot be imported",),  # a missing package, which has a rule
        cure="The line says what cannot be asked of this engine, and what to change.",
        source=_SOURCE,
    ),
)
