"""The session watchdog: when the agent dies, for whatever reason, everything it started dies too.

`kill -9` of an agent leaves Ray's daemons and, below them, engines that hold GPU memory. All of them carry the
session's id in their environment. A small process of its own session holds the reading end of a pipe from the agent;
its end without a farewell means that the agent died. Through the same pipe it learns what to tell the user then: a
process that is ended from below, as by Ray's library, can say nothing. This file is both the agent's side and that
process, which runs it as a bare script with nothing but the standard library.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

if __name__ == "__main__":
    # A bare stand-in for the package: its real __init__ loads far more than this small process should hold.
    package = type(sys)("runners")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]  # noqa: PTH100, PTH120 - pathlib is slow to load
    sys.modules["runners"] = package

from runners.cookies import SESSION_VARIABLE, kill_processes
from runners.processes import open_pidfd

FAREWELL = b"bye\n"
BLOCK_BYTES = 4096
"""Most that a pipe takes in one piece. Source: PIPE_BUF of Linux."""
STDERR = 2
KILL_BOUND_S = 120.0
"""How long it tries: a process that a GPU driver holds can take tens of seconds to die."""


class SessionWatchdog:
    """The agent's side: as long as this object is open and the agent lives, nothing happens."""

    def __init__(self, session_id: str) -> None:
        """Start the watching process."""
        import subprocess  # not at the top: the watching process loads this file too and needs none of it

        reader, self._writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, session_id, str(os.getpid())],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=None if sys.__stderr__ is not None else subprocess.DEVNULL,  # else a file of ours may be no. 2
                env={},
                start_new_session=True,
            )
        finally:
            os.close(reader)

    @property
    def pid(self) -> int:
        """Return the pid of the watching process."""
        return self._process.pid

    @contextmanager
    def last_words(self, text: str) -> Iterator[None]:
        """Have a line of text written to standard error, should this process end within the body and say nothing."""
        self._write(text.replace("\n", " ").encode()[: BLOCK_BYTES - 1] + b"\n")
        try:
            yield
        finally:
            self.take_back()

    def take_back(self) -> None:
        """Have nothing written: this process says itself why it ends."""
        self._write(b"\n")

    def _write(self, line: bytes) -> None:
        if self._writer >= 0:
            with suppress(BrokenPipeError):  # it is gone already
                os.write(self._writer, line)

    def close(self) -> None:
        """Dismiss the watching process; nothing is killed. May be called again."""
        if self._writer < 0:
            return
        self._write(FAREWELL)
        os.close(self._writer)
        self._writer = -1
        self._process.wait()


def start_session_watchdog(session_id: str) -> SessionWatchdog:
    """Guard everything that has AGENT_SESSION=`session_id` in its environment against the death of the caller.

    What is to be found must be started with `cookies.KEEP_ENVIRON` in its environment as well (so set both in
    os.environ before `ray.init`), or a process that changes its title hides itself.
    """
    return SessionWatchdog(session_id)


def main(session_id: str, agent: int) -> None:
    """Wait for the farewell or the end of the agent; after the latter, say its last words and kill the session."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    heard = _heard(agent)
    if heard != FAREWELL:
        _say(heard)
        kill_processes(session_id, variable=SESSION_VARIABLE, bound_s=KILL_BOUND_S)


def _say(words: bytes) -> None:
    """Write what there is to say, and let go of the agent's output: whoever reads it waits for nobody but the agent."""
    with suppress(OSError):  # nobody reads it any more
        if words.strip():
            os.write(STDERR, words)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDERR)
    os.close(nowhere)


def _heard(agent: int) -> bytes:
    """Return the agent's last line, once it said farewell or has ended: a forked child may hold the pipe open."""
    pipe, text, last, is_alive = sys.stdin.fileno(), b"", b"", True
    os.set_blocking(pipe, False)
    poller = select.poll()
    poller.register(pipe, select.POLLIN)
    try:
        if (descriptor := open_pidfd(agent)) is not None:
            poller.register(descriptor, select.POLLIN)
    except ProcessLookupError:
        is_alive = False  # only look what it said
    while last != FAREWELL:
        ready = [each for each, _ in poller.poll(None if is_alive else 0)]
        is_alive = is_alive and ready == [pipe]
        block = os.read(pipe, BLOCK_BYTES) if pipe in ready else b""
        if not block and (pipe in ready or not is_alive):
            break
        text = (text + block)[-2 * BLOCK_BYTES :]
        last = text.splitlines(keepends=True)[-1]
    return last


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
