"""The runner's contract: a request goes in, evidence comes out, and nothing is concluded here.

Everything that crosses a process boundary (agent → Ray task → engine and back) is one of these frozen models, sent as
JSON, so that no pickle of ours is ever read back from storage or from the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from runners.frozen import Frozen
from runners.measured import Latency, LevelMeasurement, Measurement, StoppedEarly, StopRule
from runners.probe_measurement import ProbedCall, ProbeMeasurement
from runners.shown import Shown
from runners.slot import Slot
from runners.workload import Workload
from search_spaces import Assignment, Facts, Scalar

__all__ = [
    "Command",
    "Deadlines",
    "EffectProof",
    "EngineSettings",
    "Exit",
    "Frozen",
    "Latency",
    "Leftovers",
    "LevelMeasurement",
    "LogLine",
    "Measurement",
    "Phase",
    "ProbeMeasurement",
    "ProbedCall",
    "Resolution",
    "Rewrite",
    "RunRecord",
    "Rung",
    "Runner",
    "StopRule",
    "StoppedEarly",
    "TrialRequest",
    "Workload",
]


class Phase(StrEnum):
    """Where in its life a launch is, in the order in which a healthy launch passes through."""

    RESOLVE = "resolve"
    SPAWN = "spawn"
    INIT_DISTRIBUTED = "init_distributed"
    LOAD_WEIGHTS = "load_weights"
    ALLOC_KV = "alloc_kv"
    COMPILE = "compile"
    CAPTURE_GRAPHS = "capture_graphs"
    WARMUP = "warmup"
    READY = "ready"
    SERVE = "serve"
    STOP = "stop"


class Rung(StrEnum):
    """How much of the real thing a launch is, from cheapest to dearest."""

    RESOLVE = "resolve"
    PROBE = "probe"
    DUMMY = "dummy"
    FULL = "full"


class EngineSettings(Frozen):
    """What stays fixed through a study: the model, the ranks, flags the user gave."""

    engine: str
    num_ranks: int
    """Tensor-parallel size, in processes."""
    device: str
    """`cuda` or `cpu`."""
    options: Mapping[str, Scalar] = Field(default_factory=dict)
    """Fixed engine options, by the engine's own long option name without the dashes."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    """Fixed environment variables of the engine, on top of the user's own."""
    python: str | None = None
    """Python of the user's own environment that holds the engine; None for engines that live in ours."""
    model: str | None = None
    """Model path or name, for engines that serve one."""
    draft_model: str | None = None
    """Draft model path or name, for speculation with one."""
    node_model: str | None = None
    """Absolute path of the node model or recorded table that the replay engine answers from."""


class Deadlines(Frozen):
    """When waiting ends, in seconds. A phase that is not listed has `phase_default_s`."""

    phase_s: Mapping[Phase, float] = Field(default_factory=dict)
    phase_default_s: float = 120.0
    no_progress_s: float = 60.0
    """Longest silence (no log line, no CPU time used, nothing read, no process begun or ended) before it is a hang."""
    stop_s: float = 5.0
    """How long a launch may take to end after SIGTERM before it is killed."""
    batch_s: float | None = None
    """Longest time for a whole batch of probes; those that it does not reach are lost."""


class TrialRequest(Frozen):
    """One launch, described completely: a runner needs nothing else, on whichever node it wakes up."""

    study: str
    trial: int
    """Number of the trial in its study."""
    identity: str = ""
    """Key of (resolved assignment, kind, repeat): equal when the very same work is queued again."""
    rung: Rung
    settings: EngineSettings
    assignment: Assignment
    """The resolved assignment: what the engine is really asked to run."""
    options: Mapping[str, Scalar] = Field(default_factory=dict)
    """What the assignment puts on the command line: long option without dashes → text; true is a bare flag."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    """What the assignment puts into the environment."""
    workload: Workload
    probe_sizes: tuple[int, ...] = ()
    """Message sizes of a probe, in bytes, in the place of those of the model and the workload."""
    deadlines: Deadlines = Deadlines()
    stop: StopRule | None = None
    """When the load may end early, as clearly slower than what is known; None: it is served whole."""
    decisive_patterns: tuple[str, ...] = ()
    """Regular expressions; a log line that matches one ends the wait at once (runners know no rules of their own)."""
    cookie: str
    """Random id put into the environment of everything this launch starts, as AGENT_COOKIE."""
    environment: Mapping[str, str]
    """The user's environment, as the agent found it (not that of the Ray worker)."""
    artifact_dir: str
    """Absolute path of the folder for the log, the result and the stacks of this trial."""
    slot: Slot | None = None
    """The part of the node that the trial has; None: all of it, or what Ray gives."""
    shares_node: bool = False
    """Whether other trials may run on the node at the same time: what Ray gives is then made a slot, on the node."""


class Exit(Frozen):
    """How the launch's leader ended. Neither field is a verdict: exit code 0 is not success, signal 9 is not OOM."""

    code: int | None = None
    signal: int | None = None
    requested: bool = False
    """True when we asked for the stop."""
    cause: str = "exited"
    """What ended the wait: exited, served, deadline, no_progress, decisive_line, child_died (a process without which
    the engine cannot serve), cancelled, lost (the warden or the task died)."""


class LogLine(Frozen):
    """A line of a trial's log, numbered from 1."""

    number: int
    text: str


class EffectProof(Frozen):
    """Whether a parameter took effect, and the evidence for it."""

    parameter: str
    requested: Scalar
    effective: Scalar
    evidence: str


class Leftovers(Frozen):
    """What was still there after the clean-up; all empty on a clean end."""

    processes: tuple[int, ...] = ()
    shared_memory: tuple[str, ...] = ()
    """Names in /dev/shm that this launch created and that could not be removed."""
    gpu_memory_bytes: int = 0
    ports: tuple[int, ...] = ()
    """Ports on which this launch still listens."""
    folders: tuple[str, ...] = ()
    """Temporary folders that could not be removed."""

    @property
    def is_clean(self) -> bool:
        """True when the slot may be used again."""
        return self == Leftovers()


class RunRecord(Frozen):
    """The evidence of one launch. It says what was seen and concludes nothing."""

    exit: Exit
    phase: Phase
    """The last phase reached."""
    phase_s: Mapping[Phase, float] = Field(default_factory=dict)
    """Seconds spent in each phase that was entered."""
    wall_s: float
    """From the request to the end of the clean-up."""
    cleanup_s: float = 0.0
    """The part of it after the launch was decided: stopping, killing, verifying."""
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    """What was set on top of the user's environment."""
    log_path: str | None = None
    log_lines: int = 0
    excerpt: tuple[LogLine, ...] = ()
    """The last lines of the log, for a reader; the classifier reads the file."""
    stacks_path: str | None = None
    measurement: Measurement | None = None
    probe: ProbeMeasurement | None = None
    passed: bool = False
    """For the rungs that measure nothing: arguments were resolved (resolve), a completion was served (dummy)."""
    shown: Shown | None = None
    """What the engine shows of its arguments, at the resolve rung."""
    not_probed: str | None = None
    """Why a probe could not look at what it was asked for: that is neither a pass nor a failure."""
    effects: tuple[EffectProof, ...] = ()
    leftovers: Leftovers = Leftovers()
    node: str = ""
    """Host name of the node it ran on."""
    slot: Slot | None = None
    """The part of the node that it had, where it was given one."""


class Rewrite(Frozen):
    """A requested value that the engine replaces or ignores: the measurement belongs to the resolved value."""

    parameter: str
    requested: Scalar
    resolved: Scalar
    why: str


class Resolution(Frozen):
    """What an engine would really run for an assignment, or why it would refuse it."""

    assignment: Assignment
    rewrites: tuple[Rewrite, ...] = ()
    error: str | None = None


class Command(Frozen):
    """How a launch is started: an argument list (never a shell line) and what is set on top of the environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = Field(default_factory=dict)


class Runner(Protocol):
    """Executes trials of one engine. Never raises for what the engine did: death, hang and bad output are evidence."""

    name: str
    rungs: tuple[Rung, ...]
    """The rungs this engine has, cheapest first. With RESOLVE among them, `run` asks the engine itself."""

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what the engine would really run on a node with these facts, without a GPU and within milliseconds."""

    def command(self, request: TrialRequest) -> Command:
        """Return the exact command of a full launch, for the user to repeat it."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Launch at `request.rung`, measure, stop, clean up, and return the evidence."""

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Run a batch of probes one after the other on the same slot, one record for each request, in order."""
