"""Engines for tests of how a search ends: never, only when told to, or with every secret in its log."""

from __future__ import annotations

import sys

from runners import Command, EffectProof, Exit, Phase, RunRecord, TrialRequest
from runners.launch_plan import LaunchPlan
from runners.lifecycle import launch
from tests.support.synthetic_engine import SyntheticEngine, failed_record, measured

HOLD = "TEST_HOLD"
"""Variable that names a file: while it is there, launches last. With content, they also ignore SIGTERM."""


class BrokenEngine(SyntheticEngine):
    """Every launch fails the same way."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Fail."""
        return failed_record(request, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.")


class HoldingEngine(SyntheticEngine):
    """Launches are real processes with a child in a session of its own, and last while the file is there."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Run until the file is gone, then answer."""
        record = launch(request, Command(argv=(sys.executable, "-S", "-c", CHILD)), LaunchPlan(drain_s=0.0))
        return record.model_copy(update={"measurement": measured(request)})


CHILD = f"""
import os, signal, subprocess, sys, time
path = os.environ.get("{HOLD}", "")
if os.path.exists(path):
    if os.path.getsize(path):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
while os.path.exists(path):
    print("held", flush=True)
    time.sleep(0.05)
"""


class LeakyEngine(SyntheticEngine):
    """Prints every secret that it gets to see: a launch with experts apart fails with a line that has them all."""

    def command(self, request: TrialRequest) -> Command:
        """Return a command with the secrets in it."""
        options = [word for name, value in request.settings.options.items() for word in (f"--{name}", str(value))]
        return Command(argv=("serve", *options), env=dict(request.settings.variables))

    def run(self, request: TrialRequest) -> RunRecord:
        """Answer, or fail, with a log that repeats the command and the user's own secret."""
        command = self.command(request)
        seen = [*command.argv, *command.env.values(), request.environment.get(INHERITED, "")]
        record = failed_record(request, f"RuntimeError: 401 for {' '.join(seen)}")
        record = record.model_copy(update={"argv": command.argv, "env": command.env})
        if request.assignment["expert_parallel"] is True:
            return record
        line = record.excerpt[-1].text
        proof = EffectProof(parameter="draft_length", requested="asked", effective="ran", evidence=line)
        update = {"exit": Exit(code=0), "phase": Phase.STOP, "measurement": measured(request), "effects": (proof,)}
        return record.model_copy(update=update)


INHERITED = "HUB_API_KEY"
"""A secret of the user's own environment."""
