"""A launch ends when one of its ranks does, when it is told to, and leaves nothing behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]


@contextmanager
def serving(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A launch that serves for minutes, and the pids of its ranks."""
    flags = ["--preset", "tiny", "--device", "cpu", "--requests", "100000", "--result", str(tmp_path / "result.json")]
    process = subprocess.Popen(
        [sys.executable, "-m", "runners.torch_engine", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    try:
        assert process.stdout is not None
        assert any("phase=serve" in line for line in process.stdout)
        yield process, children_of(process.pid)
    finally:
        process.kill()
        process.communicate()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_rank_is_named_and_ends_the_launch(tmp_path: Path) -> None:
    """The signal is told by number and name, and the other rank does not outlive it."""
    with serving(tmp_path) as (process, ranks):
        os.kill(ranks[1], signal.SIGKILL)
        _, stderr = process.communicate(timeout=20)
        assert process.returncode == 1
        assert "rank 1 died: signal 9 (SIGKILL)" in stderr
        assert not any(map(is_running, ranks))
    assert not (tmp_path / "result.json").exists()


def test_sigterm_ends_leader_and_ranks(tmp_path: Path) -> None:
    """The exit code says which signal it was."""
    with serving(tmp_path) as (process, ranks):
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 128 + signal.SIGTERM
        assert not any(map(is_running, ranks))


def test_ranks_die_with_a_leader_that_was_killed(tmp_path: Path) -> None:
    """Not even SIGKILL of the leader leaves a rank that holds a GPU."""
    with serving(tmp_path) as (process, ranks):
        watched = [os.pidfd_open(rank) for rank in ranks]
        process.kill()
        process.communicate(timeout=20)
        for pidfd in watched:
            wait_for_exit(pidfd)


def wait_for_exit(pidfd: int) -> None:
    """Fail unless the process ends within ten seconds."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    assert poller.poll(10_000)
    os.close(pidfd)


def test_a_clean_run_leaves_no_file_behind(
    engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The ranks meet in anonymous memory; only the result remains."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    shared_before = shared_memory_names()
    launch = engine("--device", "cpu")
    assert launch.exit_code == 0
    assert list(temporary.iterdir()) == []
    assert [path.name for path in tmp_path.glob("*result*")] == ["result.json"]
    assert not {name for name in shared_memory_names() - shared_before if name.startswith(("torch_", "nccl-"))}


def shared_memory_names() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}  # noqa: S108 - looked at, not used


def test_phases_come_in_order_and_in_full(engine: Callable[..., Any]) -> None:
    """Callers time phases by these lines."""
    launch = engine("--device", "cpu")
    phases = [line.split("phase=")[1] for line in launch.stdout.splitlines() if "phase=" in line]
    assert phases == ["spawn", "init_distributed", "load_weights", "alloc_kv", "warmup", "ready", "serve", "stop"]
