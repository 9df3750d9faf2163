"""Starting the stub server of a test, and ending it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("stub_server.py")
LISTENING = "listening on "


@dataclass(frozen=True)
class StubServer:
    """A running stub."""

    base_url: str
    process: subprocess.Popen[str]


def stub_argv(**options: object) -> list[str]:
    """Return the command of a stub with these options (`fault="die", fault_at=3, incremental=True`)."""
    argv = [sys.executable, "-S", "-u", str(SCRIPT)]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        argv += [flag] if value is True else [] if value is False else [flag, str(value)]
    return argv


@contextmanager
def stub_server(**options: object) -> Iterator[StubServer]:
    """Yield a stub that listens on a free port of 127.0.0.1; killed afterwards, whatever it does."""
    process = subprocess.Popen(stub_argv(**options), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith(LISTENING):
                break
        else:
            raise AssertionError(f"the stub server ended with {process.wait()} before it listened")
        yield StubServer(line.removeprefix(LISTENING).strip(), process)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
