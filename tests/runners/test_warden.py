"""The warden: nothing of an engine outlives its owner, its leader or the warden itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.cookies import COOKIE_VARIABLE, find_processes, kill_processes
from runners.processes import descendants, is_running, read_stat
from runners.warden_client import WARDEN, WardenClient
from tests.support.launches import FAMILY, python_command
from tests.support.waiting import wait_until

WAIT = "print('up', flush=True)\ntime.sleep(600)"
FAMILY_SIZE = 4


@pytest.fixture
def cookie() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    kill_processes(value)


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "engine.log"


def start(cookie: str, log_path: Path, *program: str, drain_s: float = 0.2) -> WardenClient:
    environment = {**os.environ, COOKIE_VARIABLE: cookie}
    return WardenClient(
        python_command(*program).argv,
        environment,
        cwd=log_path.parent,
        log_path=log_path,
        temp_dir=log_path.parent / "temporary",
        drain_s=drain_s,
    )


def living_below(pid: int) -> list[int]:
    return [stat.pid for stat in descendants(pid) if not stat.is_zombie]


def is_up(warden: WardenClient, log_path: Path) -> bool:
    return b"up" in log_path.read_bytes() and len(living_below(warden.pid)) == FAMILY_SIZE


def wait_for_end(warden: WardenClient) -> None:
    warden.listen_until(lambda: warden.is_gone, 20.0)
    warden.close(20.0)


@pytest.mark.parametrize(
    ("program", "expected"),
    [("pass", (0, None)), ("raise SystemExit(3)", (3, None)), ("import os; os.kill(os.getpid(), 11)", (None, 11))],
)
def test_the_exit_of_the_leader_is_reported(
    cookie: str, log_path: Path, program: str, expected: tuple[int | None, int | None]
) -> None:
    warden = start(cookie, log_path, program)
    wait_for_end(warden)
    assert warden.exit == expected
    assert (warden.is_gone, warden.is_lost, warden.killed) == (True, False, ())


def test_a_program_that_cannot_be_started_is_evidence_in_the_log(cookie: str, log_path: Path) -> None:
    environment = {**os.environ, COOKIE_VARIABLE: cookie}
    folder = log_path.parent
    warden = WardenClient(
        ["/no/such/engine"], environment, cwd=folder, log_path=log_path, temp_dir=folder / "temporary"
    )
    wait_for_end(warden)
    assert warden.exit == (127, None)
    assert "cannot execute /no/such/engine" in log_path.read_text()


def test_what_outlives_the_leader_is_killed_and_named(cookie: str, log_path: Path) -> None:
    warden = start(cookie, log_path, FAMILY, drain_s=1.0)
    wait_for_end(warden)
    assert warden.exit == (0, None)
    assert len(warden.killed) == FAMILY_SIZE - 1
    assert find_processes(cookie) == []


def test_what_ends_by_itself_after_the_leader_is_let_go(cookie: str, log_path: Path) -> None:
    program = """
        import subprocess, sys
        code = "import sys; sys.stdin.read(); print('finished')"
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    """
    warden = start(cookie, log_path, program, drain_s=20.0)
    wait_for_end(warden)
    assert warden.killed == ()
    assert "finished" in log_path.read_text()


def test_term_asks_and_kill_does_not(cookie: str, log_path: Path) -> None:
    polite = """
        signal.signal(signal.SIGTERM, lambda *_: print("asked", flush=True))
        print("up", flush=True)
        while True:
            time.sleep(60)
    """
    warden = start(cookie, log_path, FAMILY, polite)
    wait_until(lambda: is_up(warden, log_path))
    warden.terminate()
    wait_until(lambda: b"asked" in log_path.read_bytes())
    assert warden.exit is None
    warden.kill()
    wait_for_end(warden)
    assert warden.exit == (None, signal.SIGKILL)
    assert find_processes(cookie) == []


def test_nothing_outlives_a_killed_owner(cookie: str, log_path: Path) -> None:
    """kill -9 of the owning task leaves no process, clean environment or not, and no temporary folder."""
    (log_path.parent / "temporary").mkdir()
    owner_program = f"""
import sys, time
from pathlib import Path
from tests.runners.test_warden import start, FAMILY, WAIT
warden = start({cookie!r}, Path({str(log_path)!r}), FAMILY, WAIT)
print(warden.pid, flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", owner_program]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        warden = int(owner.stdout.readline())
        wait_until(lambda: len(living_below(warden)) == FAMILY_SIZE and b"up" in log_path.read_bytes())
        family = [stat.key for stat in descendants(warden)]
        owner.kill()
        wait_until(lambda: read_stat(warden) is None or not living_below(warden))
    wait_until(lambda: not any(is_running(key) for key in family) and not find_processes(cookie))
    wait_until(lambda: not (log_path.parent / "temporary").exists())


def test_a_killed_warden_is_noticed_and_its_leader_dies(cookie: str, log_path: Path) -> None:
    warden = start(cookie, log_path, FAMILY, WAIT)
    wait_until(lambda: is_up(warden, log_path))
    warden.listen_until(lambda: warden.leader is not None, 20.0)
    assert warden.leader is not None
    leader = read_stat(warden.leader)
    assert leader is not None
    also = [stat.key for stat in descendants(warden.pid)]
    os.kill(warden.pid, signal.SIGKILL)
    warden.listen_until(lambda: False, 20.0)
    assert warden.is_lost
    wait_until(lambda: not is_running(leader.key))
    assert kill_processes(cookie, also=also) == []
    assert not any(is_running(key) for key in also)
    warden.close(1.0)


def test_signals_blocked_or_ignored_by_the_owner_do_not_reach_the_engine(cookie: str, log_path: Path) -> None:
    """Ray's workers leave SIGINT blocked; an engine that inherits that never notices a Ctrl-C."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        show = "print(*[line for line in open('/proc/self/status') if line[:6] in ('SigBlk', 'SigIgn')])"
        warden = start(cookie, log_path, show)
        wait_for_end(warden)
    finally:
        signal.signal(signal.SIGUSR1, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    fields = dict(line.split(":") for line in log_path.read_text().split("\n") if ":" in line)
    blocked, ignored = (int(fields[name].strip(), 16) for name in ("SigBlk", " SigIgn"))
    python_ignores = {signal.SIGPIPE, signal.SIGXFSZ}
    assert blocked == 0
    # Only signals that a program may set: posix_spawn leaves the C library's own ones (32 and 33) ignored.
    assert {number for number in signal.valid_signals() if ignored >> (number - 1) & 1} <= python_ignores


def test_an_owner_that_dies_before_its_order_leaves_no_folder(tmp_path: Path) -> None:
    """The folder for temporary files is made just before the warden; no one else would ever remove it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [sys.executable, "-I", "-S", str(WARDEN), str(os.getpid()), str(folder)]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=60)
    assert not folder.exists()
