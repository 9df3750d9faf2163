"""The owner's end of a warden: start it, hear from it, ask it to stop."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from runners.cookies import COOKIE_VARIABLE, KEEP_ENVIRON, SESSION_VARIABLE

WARDEN = Path(__file__).with_name("warden.py")
INHERITED = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME")
"""What the warden's interpreter itself may need."""


class Event(TypedDict, total=False):
    """One line of the status pipe; it has one of these keys."""

    started: int
    exited: tuple[int | None, int | None]
    gone: list[int]


class WardenClient:
    """One running warden. Its fields say what it reported so far."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        cwd: Path,
        log_path: Path,
        temp_dir: Path,
        drain_s: float = 2.0,
    ) -> None:
        """Start a warden and, below it, the engine, whose output is appended to `log_path`.

        Args:
            temp_dir: removed by the warden when it outlives its owner.
            drain_s: how long what the engine started may go on after the engine itself ended.
        """
        self.leader: int | None = None
        self.exit: tuple[int | None, int | None] | None = None
        """Exit code and signal of the engine's leader, once it ended."""
        self.is_gone = False
        """True when nothing is left below the warden."""
        self.is_lost = False
        """True when the warden ended without having said that everything is gone."""
        self.killed: tuple[int, ...] = ()
        """What the warden had to kill in the end."""
        self._received = b""
        self._process, control, self._status = _start_warden(env, log_path, temp_dir)
        self._control = open(control, "wb")  # noqa: SIM115, PTH123 - a descriptor, closed by close()
        order = {"argv": list(argv), "env": dict(env), "cwd": str(cwd), "drain_s": drain_s}
        self._send(json.dumps(order))

    @property
    def pid(self) -> int:
        """Return the warden's own pid: everything of the launch is below it."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """True when there is nothing more to hear."""
        return self.is_gone or self.is_lost

    def listen(self, timeout_s: float) -> None:
        """Wait for the next report, at most this long, and take it in."""
        if self.is_over:
            return
        poller = select.poll()
        poller.register(self._status, select.POLLIN)
        if poller.poll(max(timeout_s, 0.0) * 1000):
            self._take(os.read(self._status, 65536))

    def listen_until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        """Listen until `is_done`, nothing more can come, or the time is up; return whether it is done."""
        deadline = time.monotonic() + timeout_s
        while not is_done() and not self.is_over and (left_s := deadline - time.monotonic()) > 0:
            self.listen(left_s)
        return is_done()

    def terminate(self) -> None:
        """Ask the engine and what it started to end, by SIGTERM."""
        self._send("term")

    def kill(self) -> None:
        """Have everything below the warden killed."""
        self._send("kill")

    def close(self, timeout_s: float) -> None:
        """Let go of the warden, which kills what is left below it and ends; wait for that, at most this long."""
        with suppress(BrokenPipeError):
            self._control.close()
        self.listen_until(lambda: self.is_gone, timeout_s)
        if self.is_over:
            self._process.wait()
        os.close(self._status)

    def _send(self, line: str) -> None:
        with suppress(BrokenPipeError):  # it is dead; listen() finds that out, and in which way
            self._control.write(line.encode() + b"\n")
            self._control.flush()

    def _take(self, received: bytes) -> None:
        if not received:
            self.is_lost = not self.is_gone
            return
        *lines, self._received = (self._received + received).split(b"\n")
        for line in lines:
            self._take_event(json.loads(line))

    def _take_event(self, event: Event) -> None:
        if "started" in event:
            self.leader = event["started"]
        elif "exited" in event:
            code, number = event["exited"]
            self.exit = (code, number)
        elif "gone" in event:
            self.is_gone = True
            self.killed = tuple(event["gone"])


def _start_warden(env: Mapping[str, str], log_path: Path, temp_dir: Path) -> tuple[subprocess.Popen[bytes], int, int]:
    """Return the warden's process and the owner's ends of its control and status pipes."""
    control_reader, control_writer = os.pipe()
    status_reader, status_writer = os.pipe()
    try:
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WARDEN), str(os.getpid()), str(temp_dir)],
                stdin=control_reader,
                stdout=status_writer,
                stderr=log,
                env=_warden_environment(env),
                start_new_session=True,
            )
    except OSError:
        os.close(control_writer)
        os.close(status_reader)
        raise
    finally:
        os.close(control_reader)
        os.close(status_writer)
    return process, control_writer, status_reader


def _warden_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return a small environment that carries the marks of the launch, so that the warden is found with the rest."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    marks = {name: env[name] for name in (COOKIE_VARIABLE, SESSION_VARIABLE, *KEEP_ENVIRON) if name in env}
    return inherited | marks
