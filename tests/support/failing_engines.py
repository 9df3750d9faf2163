"""Engines for tests of how a search ends: one that never works, and one whose launches last until they are ended."""

from __future__ import annotations

import sys

from runners import Command, RunRecord, TrialRequest
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
