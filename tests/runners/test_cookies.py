"""Cookies: what carries them is found and killed, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.cookies import (
    COOKIE_VARIABLE,
    SESSION_VARIABLE,
    find_processes,
    is_alive,
    kill_processes,
    process_identity,
)
from runners.processes import ProcessKey, is_running, read_stat, send_signal
from tests.support.waiting import wait_until

Start = Callable[..., subprocess.Popen[bytes]]
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def cookie() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    kill_processes(value)


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start_one(**variables: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(SLEEP, env={**os.environ, **variables}))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.wait()


def pids(keys: list[ProcessKey]) -> set[int]:
    return {key.pid for key in keys}


def test_only_the_exact_entry_matches(cookie: str, start: Start) -> None:
    marked = start(**{COOKIE_VARIABLE: cookie})
    others = [
        start(**{COOKIE_VARIABLE: cookie + "1"}),
        start(**{"MY_" + COOKIE_VARIABLE: cookie}),
        start(NOTE=f"{COOKIE_VARIABLE}={cookie}"),
        start(**{SESSION_VARIABLE: cookie}),
    ]
    assert pids(find_processes(cookie)) == {marked.pid}
    assert pids(find_processes(cookie, variable=SESSION_VARIABLE)) == {others[-1].pid}
    assert kill_processes(cookie) == []
    assert marked.wait() == -signal.SIGKILL
    assert all(other.poll() is None for other in others)


def test_a_zombie_is_not_found(cookie: str, start: Start) -> None:
    child = start(**{COOKIE_VARIABLE: cookie})
    child.kill()
    wait_until(lambda: (stat := read_stat(child.pid)) is not None and stat.is_zombie)
    assert find_processes(cookie) == []


def test_the_caller_never_kills_itself(cookie: str) -> None:
    """A process that carries the cookie may clean up what else carries it."""
    code = f"""
import subprocess, sys
from runners.cookies import kill_processes
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(kill_processes({cookie!r}), child.wait())
"""
    environment = {**os.environ, COOKIE_VARIABLE: cookie, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "-9"]


def test_a_child_with_a_clean_environment_dies_with_its_marked_parent(cookie: str) -> None:
    code = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={})
print(child.pid, flush=True)
time.sleep(600)
"""
    environment = {**os.environ, COOKIE_VARIABLE: cookie}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = read_stat(int(parent.stdout.readline()))
        assert child is not None
        assert kill_processes(cookie) == []
        assert not is_running(child.key)


def test_a_pid_used_again_is_not_signalled(start: Start) -> None:
    child = start()
    stat = read_stat(child.pid)
    assert stat is not None
    assert not send_signal(ProcessKey(child.pid, stat.started_ticks - 1), signal.SIGKILL)
    assert send_signal(stat.key, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not send_signal(stat.key, signal.SIGKILL)


def test_a_lease_is_alive_dead_or_out_of_sight(start: Start) -> None:
    child = start()
    lease = process_identity(child.pid)
    assert is_alive(*lease) is True
    assert is_alive(*lease._replace(started_ticks=lease.started_ticks + 1)) is False
    assert is_alive(*lease._replace(boot_id="another boot")) is False
    assert is_alive(*lease._replace(host="another host")) is None
    assert is_alive(*lease._replace(pid_namespace="pid:[1]")) is None
    child.kill()
    wait_until(lambda: is_alive(*lease) is False)
    child.wait()
    with pytest.raises(ProcessLookupError):
        process_identity(child.pid)
