"""The process between a trial's owner and its engine; it sees to it that nothing of the engine outlives the owner.

Run as a script (`warden_client.py` starts it), so it loads nothing but the standard library. It is the subreaper of
everything below it: a daemon that cuts itself loose lands here, so "no children left" means "nothing left".

Standard input is the control pipe: one line of JSON that says what to run, then the commands `term` and `kill`; its
end means that the owner is gone. Standard output is the status pipe, one line of JSON an event:
`{"started": pid}`, `{"exited": [code, signal]}`, `{"gone": [pids that had to be killed]}`. Standard error becomes
the engine's output.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypedDict

if __name__ == "__main__":
    # A bare stand-in for the package: its real __init__ loads pydantic, and a launch would wait for that.
    package = type(sys)("runners")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]  # noqa: PTH100, PTH120 - pathlib is slow to load
    sys.modules["runners"] = package

from runners.processes import ProcessKey, descendants, open_pidfd, send_signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_EXECUTE = 127
"""Exit code of the leader when its program cannot be started, as shells have it."""
FIRST_KILL_INTERVAL_S = 0.01
LAST_KILL_INTERVAL_S = 1.0
"""Time between two rounds of killing: it doubles, for a process that the driver holds can take minutes to die."""

CONTROL, STATUS, OUTPUT = 0, 1, 2


class Order(TypedDict):
    """The first line on the control pipe."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    drain_s: float


class Warden:
    """Starts one engine, obeys and watches its owner, reaps and, in the end, kills everything below itself."""

    def __init__(self, order: Order, received: bytes, owner: int | None, temp_dir: str) -> None:
        """Start the engine.

        Args:
            order: what to start.
            received: what was read from the control pipe behind the order.
            owner: a pidfd of the process that the engine must not outlive; None leaves only the pipe to tell.
            temp_dir: removed at the end if the owner is not there to do it.
        """
        self._drain_s = order["drain_s"]
        self._temp_dir = temp_dir
        self._control = received
        self._owner = owner
        self._leader_ended = False
        self._is_orphan = False
        self._must_kill = False
        self._kill_at = float("inf")
        self._kill_interval_s = FIRST_KILL_INTERVAL_S
        self._killed: set[int] = set()
        self._wake = _child_signal_pipe()
        self._leader = _start_engine(order)
        _report({"started": self._leader})

    def run(self) -> None:
        """Serve until nothing is left below this process, then report what had to be killed."""
        poller = select.poll()
        for descriptor in (CONTROL, self._wake, self._owner):
            if descriptor is not None:
                poller.register(descriptor, select.POLLIN)
        while self._reap():
            if self._must_kill or time.monotonic() >= self._kill_at:
                self._kill_everything()
            for descriptor, _ in poller.poll(self._timeout_ms()):
                self._handle(descriptor, poller)
        _report({"gone": sorted(self._killed)})
        if self._is_orphan:
            _remove_tree(self._temp_dir)

    def _timeout_ms(self) -> float | None:
        if self._must_kill:
            return self._kill_interval_s * 1000
        left_s = self._kill_at - time.monotonic()
        return None if left_s == float("inf") else max(left_s, 0.0) * 1000

    def _handle(self, descriptor: int, poller: select.poll) -> None:
        if descriptor == self._wake:
            os.read(self._wake, 4096)
            return
        received = os.read(CONTROL, 4096) if descriptor == CONTROL else b""
        if not received:  # the owner closed its end or died
            self._is_orphan = self._must_kill = True
            poller.unregister(descriptor)
            return
        *commands, self._control = (self._control + received).split(b"\n")
        for command in commands:
            self._obey(command)

    def _obey(self, command: bytes) -> None:
        if command == b"kill":
            self._must_kill = True
        elif command == b"term":
            self._terminate()

    def _terminate(self) -> None:
        """Ask the engine's group to end, and the leader of every other group below it, such as a daemon's."""
        with_group = not self._leader_ended
        if with_group:
            os.killpg(self._leader, signal.SIGTERM)
        for stat in descendants(os.getpid()):
            if stat.pid == stat.group and not (with_group and stat.group == self._leader):
                send_signal(stat.key, signal.SIGTERM)

    def _kill_everything(self) -> None:
        self._must_kill = True
        self._kill_interval_s = min(2 * self._kill_interval_s, LAST_KILL_INTERVAL_S)
        living = [stat.key for stat in descendants(os.getpid()) if not stat.is_zombie]
        # The leader first: when it dies of this signal, that is its exit, not the failure of a rank it lost.
        for key in sorted(living, key=self._leader_first):
            if send_signal(key, signal.SIGKILL):
                self._killed.add(key.pid)

    def _leader_first(self, key: ProcessKey) -> bool:
        return key.pid != self._leader

    def _reap(self) -> bool:
        """Collect dead children; return False when there are no children any more, dead or alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._leader:
                self._note_exit(status)

    def _note_exit(self, status: int) -> None:
        self._leader_ended = True
        self._kill_at = time.monotonic() + self._drain_s
        code = os.waitstatus_to_exitcode(status)
        _report({"exited": [code, None] if code >= 0 else [None, -code]})


def _report(event: dict[str, object]) -> None:
    with suppress(OSError):  # the owner is gone; the control pipe says so too, and that is where it is handled
        os.write(STATUS, json.dumps(event).encode() + b"\n")


def _child_signal_pipe() -> int:
    """Return a descriptor that becomes readable when a child dies, so that nothing here has to poll for it."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _start_engine(order: Order) -> int:
    argv = order["argv"]
    warden = os.getpid()
    prctl = _prctl()
    pid = os.fork()
    if pid:
        with suppress(OSError):  # both sides do it, since either may be first; the child may have got further already
            os.setpgid(pid, pid)
        return pid
    try:
        _become_engine(prctl, warden, order["cwd"])
        os.execvpe(argv[0], argv, order["env"])  # noqa: S606 - an argument list; no shell is wanted here
    except OSError as error:
        os.write(OUTPUT, f"cannot execute {argv[0]}: {error}\n".encode())
    finally:
        os._exit(CANNOT_EXECUTE)


def _become_engine(prctl: Callable[..., int], warden: int, cwd: str) -> None:
    os.setpgid(0, 0)
    prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != warden:  # died before the line above took effect
        os._exit(CANNOT_EXECUTE)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A core dump of an engine is as large as its memory, and a search makes engines crash all night.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.chdir(cwd)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, CONTROL)
    os.dup2(OUTPUT, STATUS)


def _remove_tree(folder: str) -> None:
    import shutil  # not at the top: it takes as long to load as everything else here, and is rarely needed

    shutil.rmtree(folder, ignore_errors=True)


def _prctl() -> Callable[..., int]:
    function: Callable[..., int] = ctypes.CDLL(None).prctl
    return function


def _read_order() -> tuple[Order | None, bytes]:
    """Read the first line of the control pipe; return it with whatever was read behind it."""
    received = b""
    while b"\n" not in received:
        if not (chunk := os.read(CONTROL, 65536)):
            return None, b""
        received += chunk
    line, rest = received.split(b"\n", 1)
    return json.loads(line), rest


def main(owner: int, temp_dir: str) -> None:
    """Take the order of the process `owner` from the control pipe and serve until nothing is left to watch."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # Ray's workers leave SIGINT blocked
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # it ends with its owner or with its engine, and in no other way
    order, rest = _read_order()
    if order is None:  # the owner died before it could give one
        _remove_tree(temp_dir)
        return
    _prctl()(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    Warden(order, rest, open_pidfd(owner), temp_dir).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
