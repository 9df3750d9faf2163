"""Fork the ranks of one launch and watch them: who ended, how, and that nobody is left.

A fork keeps the leader's import of torch (about two seconds a rank). It is safe because the leader never touches
CUDA and runs no torch operation that starts threads.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

TERMINATION_GRACE_S = 2.0
"""Time between SIGTERM and SIGKILL when ranks are ended."""

_PR_SET_PDEATHSIG = 1
_STOPPING = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY_S = 1.0
"""How often the wait for ranks looks for a stop whose exception Python dropped: it does so in hooks and finalisers."""
_stopped_by: list[int] = []


class Stopped(BaseException):
    """SIGTERM or SIGINT reached the leader."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by signal {signal_number}")
        self.signal_number = signal_number


@dataclass(frozen=True, slots=True)
class RankExit:
    """How one rank ended."""

    rank: int
    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None

    @property
    def is_clean(self) -> bool:
        """Whether the rank ended by itself and without error."""
        return self.exit_code == 0

    def __str__(self) -> str:
        if self.signal is None:
            return f"rank {self.rank} failed: exit code {self.exit_code}"
        return f"rank {self.rank} died: signal {self.signal} ({signal.Signals(self.signal).name})"


@dataclass(slots=True)
class RankGroup:
    """The running ranks of one launch, by pid file descriptor."""

    running: dict[int, tuple[int, int]] = field(default_factory=dict)
    """pidfd → (rank, pid)."""

    def fork(self, rank: int, target: Callable[[int], None]) -> None:
        """Start one rank; ``target(rank)`` runs in the child, which never returns from here."""
        sys.stdout.flush()
        sys.stderr.flush()
        leader = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run_rank(rank, leader, target)
        self.running[os.pidfd_open(pid)] = (rank, pid)

    @property
    def has_lost_one(self) -> bool:
        """Whether a rank has ended whose exit nobody has waited for yet."""
        return bool(select.select(list(self.running), [], [], 0)[0])

    def wait(self, timeout_s: float | None = None) -> Iterator[RankExit]:
        """Yield every exit as it happens, until no rank runs or the time is up."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.running:
            remaining_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            ended = self._poll(remaining_ms)
            if not ended:
                return
            yield from map(self._reap, ended)

    def _poll(self, timeout_ms: float | None) -> list[int]:
        poller = select.poll()
        for pidfd in self.running:
            poller.register(pidfd, select.POLLIN)
        return [pidfd for pidfd, _ in poller.poll(timeout_ms)]

    def _reap(self, pidfd: int) -> RankExit:
        rank, pid = self.running.pop(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            return RankExit(rank, None, os.WTERMSIG(status))
        return RankExit(rank, os.WEXITSTATUS(status), None)

    def exits(self, timeout_s: float | None = None) -> list[RankExit] | None:
        """Wait for all ranks: the exits up to and including the first failure, or None when the time was up."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        exits: list[RankExit] = []
        while self.running:
            _raise_if_stopped()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for rank_exit in self.wait(min(left, _LOOK_EVERY_S)):
                exits.append(rank_exit)
                if not rank_exit.is_clean:
                    return exits
        return exits

    def end(self) -> None:
        """End what still runs: SIGTERM, a short grace, SIGKILL; returns when every rank is reaped."""
        self._signal(signal.SIGTERM)
        for _ in self.wait(TERMINATION_GRACE_S):
            pass
        self._signal(signal.SIGKILL)
        for _ in self.wait():
            pass

    def _signal(self, number: int) -> None:
        for pidfd in self.running:
            signal.pidfd_send_signal(pidfd, number)


def run_ranks(num_ranks: int, target: Callable[[int], None], timeout_s: float | None = None) -> list[RankExit] | None:
    """Run ``target(rank)`` in forked ranks until all end; the first failure ends the others.

    Returns:
        The exits up to and including the first failure; all clean when none failed; None when the time was up.
    """
    group = RankGroup()
    try:
        for rank in range(num_ranks):
            group.fork(rank, target)
        return group.exits(timeout_s)
    finally:
        group.end()


@contextmanager
def stop_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGINT into ``Stopped`` within the block, so that ``finally`` clauses end the ranks."""
    _stopped_by.clear()
    previous = {number: signal.signal(number, _stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _stop(number: int, _frame: object) -> None:
    # A second signal must not interrupt the clean-up that the first one began.
    signal.signal(number, signal.SIG_IGN)
    _stopped_by.append(number)
    raise Stopped(number)


def _raise_if_stopped() -> None:
    if _stopped_by:
        raise Stopped(_stopped_by[0])


def _run_rank(rank: int, leader: int, target: Callable[[int], None]) -> None:
    """The child's whole life; it leaves by ``os._exit``, so that nothing of the leader's runs twice."""
    exit_code = 1
    try:
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)
        _die_with(leader)
        target(rank)
        exit_code = 0
    except BaseException:  # noqa: BLE001 - the boundary of a process: whatever it was is printed and ends the rank
        lines = traceback.format_exc().splitlines()
        sys.stdout.flush()
        # One write, so that the tracebacks of several ranks do not interleave.
        sys.stderr.write("".join(f"[rank{rank}] {line}\n" for line in lines))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _die_with(leader: int) -> None:
    """Ask the kernel to kill this rank when the leader dies, however it dies (Linux ``prctl``)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != leader:
        os._exit(1)
