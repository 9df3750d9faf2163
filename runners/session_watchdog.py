"""The session watchdog: when the agent dies, for whatever reason, everything it started dies too.

`kill -9` of an agent leaves Ray's daemons and, below them, engines that hold GPU memory. All of them carry the
session's id in their environment. A small process of its own session holds the reading end of a pipe from the agent;
its end without a farewell means that the agent died. This file is both the agent's side and that process, which runs
it as a bare script with nothing but the standard library.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress

if __name__ == "__main__":
    # A bare stand-in for the package: its real __init__ loads far more than this small process should hold.
    package = type(sys)("runners")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]  # noqa: PTH100, PTH120 - pathlib is slow to load
    sys.modules["runners"] = package

from runners.cookies import SESSION_VARIABLE, kill_processes
from runners.processes import open_pidfd

FAREWELL = b"bye"
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
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )
        finally:
            os.close(reader)

    @property
    def pid(self) -> int:
        """Return the pid of the watching process."""
        return self._process.pid

    def close(self) -> None:
        """Dismiss the watching process; nothing is killed. May be called again."""
        if self._writer < 0:
            return
        with suppress(BrokenPipeError):  # it is gone already
            os.write(self._writer, FAREWELL)
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
    """Wait for the farewell or the end of the agent; after the latter, kill the session."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    if not _hears_farewell(agent):
        kill_processes(session_id, variable=SESSION_VARIABLE, bound_s=KILL_BOUND_S)


def _hears_farewell(agent: int) -> bool:
    """Wait for the pipe or for the agent's end: a forked child of the agent may hold the pipe open after it."""
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN)
    timeout_ms = None
    try:
        if (descriptor := open_pidfd(agent)) is not None:
            poller.register(descriptor, select.POLLIN)
    except ProcessLookupError:
        timeout_ms = 0  # the agent is dead: only look whether it said farewell
    ready = [descriptor for descriptor, _ in poller.poll(timeout_ms)]
    return sys.stdin.fileno() in ready and os.read(sys.stdin.fileno(), len(FAREWELL)) == FAREWELL


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
