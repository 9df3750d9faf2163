"""What may be killed while an agent works, and how: every process of its session by its kind, and its terminal."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from runners.processes import ProcessKey, ProcessStat, all_stats, descendants, is_running, read_bytes, send_signal

KINDS: Mapping[str, Callable[[str], bool]] = {
    "raylet": lambda line: line.split(" ")[0].endswith("/raylet/raylet"),
    "gcs": lambda line: line.split(" ")[0].endswith("/gcs/gcs_server"),
    "worker": lambda line: line.startswith("ray::execute"),
    "warden": lambda line: "/warden.py " in line,
    "watchdog": lambda line: "/session_watchdog.py " in line,
    "ray helper": lambda line: "ray/dashboard/" in line or "_private/log_monitor.py" in line or "/monitor.py" in line,
}
"""Kind of a process → whether this is its command line. What runs below a warden is an engine."""
WEIGHTS = {
    "agent": 6,
    "ctrl-c": 1,
    "ctrl-c twice": 1,
    "terminal closed": 1,
    "power cut": 2,
    "raylet": 2,
    "gcs": 2,
    "worker": 3,
    "warden": 3,
    "engine": 3,
    "watchdog": 1,
    "ray helper": 1,
}
"""How often each is chosen, among those that are there."""
OTHERS = {
    **WEIGHTS,
    "agent": 2,
    "raylet": 6,
    "gcs": 8,
    "worker": 4,
    "warden": 4,
    "engine": 4,
    "watchdog": 6,
    "ray helper": 6,
}
"""The same where the agent is to live on, so that several others die in one life of it."""
FATAL = frozenset({"agent", "ctrl-c", "ctrl-c twice", "terminal closed", "power cut"})
"""What ends the agent."""


def command_line(pid: int) -> str:
    """Return a process's command line as text, empty when it is gone."""
    return (read_bytes(f"/proc/{pid}/cmdline") or b"").decode(errors="replace").replace("\0", " ")


def by_kind(agent: int) -> dict[str, list[ProcessKey]]:
    """Return the living processes below an agent, by kind."""
    found: dict[str, list[ProcessKey]] = {}
    family = {stat.pid: stat for stat in descendants(agent) if not stat.is_zombie}
    wardens = {pid for pid in family if KINDS["warden"](command_line(pid))}
    for stat in family.values():
        line = command_line(stat.pid)
        kind = next((name for name, is_one in KINDS.items() if is_one(line)), None)
        if kind is None and _is_below(stat, wardens, family):
            kind = "engine"
        if kind is not None:
            found.setdefault(kind, []).append(stat.key)
    return found


def _is_below(stat: ProcessStat, roots: set[int], family: Mapping[int, ProcessStat]) -> bool:
    while stat.parent in family:
        if stat.parent in roots:
            return True
        stat = family[stat.parent]
    return False


def choose(generator: random.Random, agent: int, weights: Mapping[str, int] = WEIGHTS) -> tuple[str, ProcessKey | None]:
    """Return a victim at random: its kind, and which process where that is not the agent."""
    there = by_kind(agent)
    kinds = [kind for kind in weights if kind in FATAL or kind in there]
    kind = generator.choices(kinds, [weights[each] for each in kinds])[0]
    return kind, None if kind in FATAL else generator.choice(there[kind])


def strike(kind: str, victim: ProcessKey | None, agent: subprocess.Popen[bytes]) -> None:
    """Kill. The agent leads a process group of its own, as from a terminal. A power cut is not struck here."""
    if victim is not None:
        send_signal(victim, signal.SIGKILL)
    elif kind == "agent":
        agent.kill()
    elif kind == "terminal closed":
        os.killpg(agent.pid, signal.SIGHUP)
    else:
        os.killpg(agent.pid, signal.SIGINT)


def freeze(marked: list[ProcessKey]) -> None:
    """Stop processes where they are, as if their machine had lost its power."""
    for key in marked:
        send_signal(key, signal.SIGSTOP)


def marked_processes(entry: str) -> list[ProcessKey]:
    """Return the living processes that have `NAME=VALUE` in their environment, the caller left out."""
    found = []
    for stat in all_stats():
        if stat.is_zombie or stat.pid == os.getpid():
            continue
        environment = read_bytes(f"/proc/{stat.pid}/environ") or b""
        if entry.encode() in environment.split(b"\0"):
            found.append(stat.key)
    return found


def kill_all(keys: list[ProcessKey]) -> None:
    """Kill these processes and wait for their end."""
    for key in keys:
        send_signal(key, signal.SIGKILL)
    while any(is_running(key) for key in keys):
        os.sched_yield()


def copy_state(home: Path, to: Path) -> None:
    """Copy a state folder as a power cut leaves it: databases with their journals, whatever they were doing."""
    subprocess.run(["cp", "-a", str(home), str(to)], check=True)
