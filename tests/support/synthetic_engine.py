"""An engine for tests of the agent itself: instant, deterministic, and with planted failures.

It answers in the Ray task without starting a process. `ProcessSyntheticEngine` starts a real one under the warden.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runners import (
    Command,
    EngineSettings,
    Exit,
    Latency,
    LevelMeasurement,
    LogLine,
    Measurement,
    Phase,
    ProbeMeasurement,
    Resolution,
    Rung,
    RunRecord,
    TrialRequest,
)
from runners.launch_plan import LaunchPlan
from runners.lifecycle import launch
from search_spaces import Assignment, Facts, canonical_json

CAPTURE_ERROR = (
    "RuntimeError: Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned."
)


NOT_PROBED = "only a launch sets this memory up"


class SyntheticEngine:
    """Answers from the assignment alone. `allreduce=nccl` has no NCCL; `gloo` cannot be captured into graphs."""

    name = "synthetic"
    rungs = (Rung.PROBE, Rung.FULL)

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return the assignment as it is."""
        return Resolution(assignment=assignment)

    def command(self, request: TrialRequest) -> Command:
        """Return a command that repeats nothing: this engine exists in tests only."""
        return Command(argv=(sys.executable, "-c", "pass"), env=dict(request.variables))

    def run(self, request: TrialRequest) -> RunRecord:
        """Answer a launch."""
        error = planted_error(request.assignment)
        if error is not None:
            return failed_record(request, error)
        return RunRecord(
            exit=Exit(code=0), phase=Phase.STOP, wall_s=0.01, measurement=measured(request), node=socket.gethostname()
        )

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Answer probes."""
        return [self._probe(request) for request in requests]

    def _probe(self, request: TrialRequest) -> RunRecord:
        error = planted_error(request.assignment)
        if error is not None:
            return failed_record(request, error)
        probe = ProbeMeasurement(pass_us=100.0 + 100.0 * fraction(request.assignment), calls_per_pass=12)
        return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=0.001, probe=probe)


class PartlyProbedEngine(SyntheticEngine):
    """The same answers, but its probes cannot look at symmetric memory."""

    def _probe(self, request: TrialRequest) -> RunRecord:
        if str(request.assignment["allreduce"]).startswith("symm_mem"):
            return RunRecord(exit=Exit(code=0), phase=Phase.RESOLVE, wall_s=0.0, not_probed=NOT_PROBED)
        return super()._probe(request)


class ProcessSyntheticEngine(SyntheticEngine):
    """The same answers, each after a real process under the warden has run for a moment and left children behind."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Run a process that starts two more, then answer."""
        record = launch(request, Command(argv=(sys.executable, "-S", "-c", CHILD)), LaunchPlan(drain_s=0.0))
        error = planted_error(request.assignment)
        if error is not None:
            return failed_record(request, error)
        return record.model_copy(update={"measurement": measured(request)})


CHILD = """
import subprocess, sys, time
for _ in range(2):
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
time.sleep(0.4)
"""


def planted_error(assignment: Mapping[str, object]) -> str | None:
    """Return the last line of the log of a launch that fails, or None for one that works."""
    if assignment["allreduce"] == "nccl":
        return "RuntimeError: Distributed package doesn't have NCCL built in"
    if assignment["allreduce"] == "gloo" and assignment["cuda_graph_max_bs"] != 0:
        return "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    return None


def fraction(assignment: Mapping[str, object]) -> float:
    """Return a number in [0, 1) that depends on the assignment alone."""
    digest = hashlib.sha256(canonical_json(dict(assignment)).encode()).digest()  # type: ignore[arg-type]
    return int.from_bytes(digest[:4], "big") / 2**32


def measured(request: TrialRequest) -> Measurement:
    """Return a measurement that depends on the assignment alone."""
    draft = float(str(request.assignment["draft_length"]))
    rate = 100.0 + 10.0 * draft - draft**2 + 5.0 * fraction(request.assignment)
    latency = Latency(p50=1000.0 / rate, p99=1500.0 / rate)
    return Measurement(
        levels=tuple(
            LevelMeasurement(
                concurrency=level,
                output_tok_per_s=rate * level,
                ttft_ms=latency,
                tpot_ms=latency,
                step_ms_p50=10.0,
                verify_steps_per_s=100.0,
                acceptance_length=1.0 + draft / 2,
            )
            for level in request.workload.concurrency
        ),
        outputs=((1, 2, 3),),
    )


def failed_record(request: TrialRequest, error: str) -> RunRecord:
    """Write a log that ends with `error` and return its record."""
    folder = Path(request.artifact_dir)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "engine.log"
    lines = ["starting", "Traceback (most recent call last):", error]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return RunRecord(
        exit=Exit(code=1),
        phase=Phase.CAPTURE_GRAPHS if "captur" in error else Phase.INIT_DISTRIBUTED,
        wall_s=0.01,
        log_path=str(log),
        log_lines=len(lines),
        excerpt=tuple(LogLine(number=number, text=text) for number, text in enumerate(lines, start=1)),
        node=os.uname().nodename,
    )
