"""Requests and child programs for tests of the life cycle."""

from __future__ import annotations

import os
import sys
import textwrap
import uuid
from pathlib import Path

from runners import Command, Deadlines, EngineSettings, Rung, TrialRequest, Workload

FAMILY = """
    import os, signal, subprocess, sys, time

    def daemonise():
        "Fork twice into a session of its own and ignore every polite signal."
        if os.fork():
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while True:
            time.sleep(60)

    def spawn_stubborn_child():
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code])

    def spawn_child_with_clean_environment():
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}, start_new_session=True)

    daemonise()
    spawn_stubborn_child()
    spawn_child_with_clean_environment()
"""
"""A start of a program: three descendants that try to outlive it."""


def make_request(folder: Path, *, environment: dict[str, str] | None = None, **changes: object) -> TrialRequest:
    """Return a request whose artifacts go into `folder`, with a cookie of its own."""
    fields: dict[str, object] = {
        "study": "study",
        "trial": 1,
        "rung": Rung.FULL,
        "settings": EngineSettings(engine="torch", num_ranks=1, device="cpu"),
        "assignment": {},
        "workload": Workload(),
        "deadlines": Deadlines(stop_s=0.5),
        "cookie": uuid.uuid4().hex,
        "environment": {"PATH": os.environ["PATH"]} if environment is None else environment,
        "artifact_dir": str(folder / "artifacts"),
    }
    return TrialRequest.model_validate(fields | changes)


def python_command(*parts: str) -> Command:
    """Return the command that runs the parts, each dedented, as one Python program."""
    return Command(argv=(sys.executable, "-c", "\n".join(textwrap.dedent(part) for part in parts)))
