"""Processes that are not ours to reap are seen to die at once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from runners.death_watch import DeathWatch
from runners.processes import descendants
from tests.support.waiting import wait_until


@contextmanager
def worker(title: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with a title, and end it."""
    process = subprocess.Popen([title, "600"], executable="/bin/sleep")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def look(watch: DeathWatch) -> None:
    watch.look(descendants(os.getpid()))


def test_a_death_is_told_once_with_the_title() -> None:
    watch = DeathWatch(r"engine::")
    with worker("engine::worker_TP0") as process, worker("engine::worker_TP1"), worker("helper"):
        look(watch)
        look(watch)
        assert watch.dead() == []
        os.kill(process.pid, signal.SIGKILL)
        assert wait_until(watch.dead) == [f"engine::worker_TP0 (pid {process.pid})"]
        assert watch.dead() == []
    watch.close()


def test_what_has_another_title_may_come_and_go() -> None:
    watch = DeathWatch(r"engine::")
    with worker("helper"):
        look(watch)
    assert watch.dead() == []


def test_a_process_that_is_dead_already_is_not_watched() -> None:
    watch = DeathWatch(r"engine::")
    with worker("engine::worker") as process:
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: next(stat.is_zombie for stat in descendants(os.getpid()) if stat.pid == process.pid))
        look(watch)
        assert watch.dead() == []
