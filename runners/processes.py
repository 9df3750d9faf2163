"""What /proc says about processes, and signals that cannot hit a stranger.

Standard library only and cheap to import: the warden and the session watchdog load it as bare scripts.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

PF_KTHREAD = 0x00200000
KILL_PAUSE_S = 0.005
"""Pause between two rounds of killing: long enough for the kernel to take the first ones down."""


class ProcessKey(NamedTuple):
    """A process for ever: its pid may be used again, the pair with its start time is not."""

    pid: int
    started_ticks: int


class ProcessStat(NamedTuple):
    """The part of /proc/PID/stat that is used here."""

    pid: int
    state: str
    parent: int
    group: int
    flags: int
    major_faults: int
    cpu_ticks: int
    started_ticks: int

    @property
    def key(self) -> ProcessKey:
        """Return the pair that identifies the process."""
        return ProcessKey(self.pid, self.started_ticks)

    @property
    def is_kernel_thread(self) -> bool:
        """True for a thread of the kernel, which has no memory, arguments or environment."""
        return bool(self.flags & PF_KTHREAD)

    @property
    def is_zombie(self) -> bool:
        """True when the process is dead and only waits to be reaped."""
        return self.state in ("Z", "X")


def read_bytes(path: str) -> bytes | None:
    """Return the content of a /proc file, or None when the process is gone or not ours to read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib would double the start-up of the warden
            return file.read()
    except OSError:
        return None


def read_stat(pid: int) -> ProcessStat | None:
    """Return the state of a process, or None when there is none of that number."""
    raw = read_bytes(f"/proc/{pid}/stat")
    if not raw:
        return None
    # The command name stands in parentheses and may hold spaces and parentheses itself: split behind the last one.
    fields = raw[raw.rindex(b")") + 2 :].split()
    return ProcessStat(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        flags=int(fields[6]),
        major_faults=int(fields[9]) + int(fields[10]),
        cpu_ticks=sum(int(field) for field in fields[11:15]),
        started_ticks=int(fields[19]),
    )


def all_pids() -> list[int]:
    """Return the pids of this pid namespace."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - see read_bytes


def all_stats() -> Iterator[ProcessStat]:
    """Yield the state of every process."""
    for pid in all_pids():
        if (stat := read_stat(pid)) is not None:
            yield stat


def with_descendants(roots: Iterable[int]) -> list[ProcessStat]:
    """Return the processes in `roots` and everything below them, zombies included."""
    children: dict[int, list[ProcessStat]] = {}
    by_pid: dict[int, ProcessStat] = {}
    for stat in all_stats():
        by_pid[stat.pid] = stat
        children.setdefault(stat.parent, []).append(stat)
    found: dict[int, ProcessStat] = {}
    pending = [by_pid[pid] for pid in roots if pid in by_pid]
    while pending:
        stat = pending.pop()
        if stat.pid not in found:
            found[stat.pid] = stat
            pending.extend(children.get(stat.pid, ()))
    return list(found.values())


def descendants(root: int) -> list[ProcessStat]:
    """Return every process below `root`, without `root`, zombies included."""
    return [stat for stat in with_descendants([root]) if stat.pid != root]


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor that stands for the process, or None where the kernel has none (before 5.3, sandboxes).

    Raises:
        ProcessLookupError: there is no such process.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def send_signal(key: ProcessKey, signal_number: int) -> bool:
    """Send a signal to exactly this process; return False when it is gone or not ours.

    The pidfd pins the process first and the start time is compared afterwards, so a pid used again is never hit.
    """
    try:
        descriptor = open_pidfd(key.pid)
    except ProcessLookupError:
        return False
    try:
        stat = read_stat(key.pid)
        if stat is None or stat.key != key:
            return False
        _signal(key.pid, descriptor, signal_number)
    except OSError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _signal(pid: int, descriptor: int | None, signal_number: int) -> None:
    if descriptor is None:
        os.kill(pid, signal_number)
    else:
        signal.pidfd_send_signal(descriptor, signal_number)


def is_running(key: ProcessKey) -> bool:
    """True while exactly this process exists and is not a zombie."""
    stat = read_stat(key.pid)
    return stat is not None and stat.key == key and not stat.is_zombie


def kill_until_none(find: Callable[[], list[ProcessKey]], bound_s: float) -> list[ProcessKey]:
    """Kill what `find` returns, again and again, until it returns nothing; return what is left after the bound.

    One round is not enough: a process may start another between being seen and being killed.
    """
    deadline = time.monotonic() + bound_s
    while left := find():
        for key in left:
            send_signal(key, signal.SIGKILL)
        if time.monotonic() > deadline:
            return find()
        time.sleep(KILL_PAUSE_S)
    return []
