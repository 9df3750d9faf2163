"""Cookies: a random id in the environment of everything a launch starts, by which its processes are found again.

A leader's pid or group is worthless once it is dead; what it started still carries the cookie. Standard library only.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from typing import NamedTuple

from runners.processes import (
    ProcessKey,
    all_pids,
    is_running,
    kill_until_none,
    read_bytes,
    read_stat,
    with_descendants,
)

COOKIE_VARIABLE = "AGENT_COOKIE"
"""Marks everything that one trial started."""
SESSION_VARIABLE = "AGENT_SESSION"
"""Marks everything that one agent started, Ray's daemons included."""
KEEP_ENVIRON = {"SPT_NOENV": "1"}
"""Tells setproctitle (SGLang, vLLM and others use it) not to write a process title over /proc/PID/environ, where the
cookie is read. Must stand beside the cookie. Seen with Ray 2.60: without it two of its daemons lose the variable."""


EXEC_PAUSE_S = 0.002
"""In the midst of exec() the environment of a process reads as empty, for some microseconds."""


class ProcessIdentity(NamedTuple):
    """A process as others may look it up later: the fields of a lease."""

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started_ticks: int


def find_processes(cookie: str, *, variable: str = COOKIE_VARIABLE) -> list[ProcessKey]:
    """Return the living processes with exactly `variable=cookie` in their environment, the caller never among them."""
    entry = f"{variable}={cookie}".encode()
    marked, unclear = _search(all_pids(), entry)
    if unclear:
        time.sleep(EXEC_PAUSE_S)
        marked += _search(unclear, entry)[0]
    return marked


def find_with_descendants(cookie: str, *, variable: str = COOKIE_VARIABLE) -> list[ProcessKey]:
    """Return the marked processes and what runs below them: a child may have been given a clean environment."""
    marked = find_processes(cookie, variable=variable)
    if not marked:
        return []
    family = with_descendants(key.pid for key in marked)
    return [stat.key for stat in family if not stat.is_zombie and stat.pid != os.getpid()]


def kill_processes(
    cookie: str, *, variable: str = COOKIE_VARIABLE, also: Iterable[ProcessKey] = (), bound_s: float = 10.0
) -> list[ProcessKey]:
    """Kill everything with this cookie, and `also`, until nothing is left; return what outlived the bound.

    What is listed in `also`, or was once seen below a marked process, is followed even when its environment is clean.
    """
    known = set(also)

    def find() -> list[ProcessKey]:
        known.update(find_with_descendants(cookie, variable=variable))
        known.intersection_update([key for key in known if is_running(key)])
        return list(known)

    return kill_until_none(find, bound_s)


def process_identity(pid: int | None = None) -> ProcessIdentity:
    """Return the identity of a process of this host, by default the caller's.

    Raises:
        ProcessLookupError: there is no such process.
    """
    pid = os.getpid() if pid is None else pid
    stat = read_stat(pid)
    if stat is None:
        raise ProcessLookupError(f"no process {pid}")
    return ProcessIdentity(socket.gethostname(), _boot_id(), _pid_namespace(), pid, stat.started_ticks)


def is_alive(host: str, boot_id: str, pid_namespace: str, pid: int, started_ticks: int) -> bool | None:
    """Return whether the process of a lease still runs; None when that cannot be told from here."""
    if host != socket.gethostname():
        return None
    if boot_id != _boot_id():
        return False
    if pid_namespace != _pid_namespace():
        return None
    return is_running(ProcessKey(pid, started_ticks))


def _search(pids: Iterable[int], entry: bytes) -> tuple[list[ProcessKey], list[int]]:
    """Return the marked processes, and those whose environment is empty now and may not be in a moment."""
    marked: list[ProcessKey] = []
    unclear: list[int] = []
    for pid in pids:
        stat = read_stat(pid)  # before the environment, so that both are of the same process
        if stat is None or stat.is_zombie or stat.is_kernel_thread or pid == os.getpid():
            continue
        environment = read_bytes(f"/proc/{pid}/environ")
        if environment == b"":
            unclear.append(pid)
        elif environment and entry in environment.split(b"\0"):
            marked.append(stat.key)
    return marked, unclear


def _boot_id() -> str:
    return (read_bytes("/proc/sys/kernel/random/boot_id") or b"").decode().strip()


def _pid_namespace() -> str:
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - standard library only, and pathlib is slow to load
