"""Ray's daemons, seen while Ray starts: one that dies there would hang the start for a minute and end the process."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners.ray_daemons import LifeWatch, StartWatch, start_watched
from tests.support.waiting import wait_until


@contextmanager
def daemon(folder: Path, path: str = "gcs/gcs_server") -> Iterator[subprocess.Popen[bytes]]:
    """Keep a process that is called like one of Ray's."""
    program = folder / path
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([str(program), "600"]) as process:
        wait_until(lambda: str(program).encode() in Path(f"/proc/{process.pid}/cmdline").read_bytes())
        try:
            yield process
        finally:
            process.kill()


def seen_to_die(folder: Path, watch: StartWatch) -> StartWatch:
    """Return a watch that saw a GCS, which is dead now."""
    with daemon(folder):
        assert watch.look() is None
    return watch


@pytest.mark.parametrize(("path", "name"), [("gcs/gcs_server", "GCS"), ("raylet/raylet", "raylet")])
def test_a_daemon_that_was_started_and_died_is_named(tmp_path: Path, path: str, name: str) -> None:
    watch = StartWatch()
    assert watch.look() is None
    with daemon(tmp_path, path) as process:
        assert watch.look() is None
        process.kill()
        process.wait()
        assert watch.look() == name


def test_a_daemon_of_the_ray_that_is_replaced_may_die(tmp_path: Path) -> None:
    """It was there before the start began."""
    with daemon(tmp_path):
        watch = seen_to_die(tmp_path / "new", StartWatch())
        alone = StartWatch()
    assert alone.look() is None
    assert watch.look() == "GCS"


def test_a_start_that_hangs_is_ended(tmp_path: Path) -> None:
    """By whoever is told of it, from another thread."""
    lost, told = threading.Event(), list[str]()

    def end(daemon: str) -> None:
        told.append(daemon)
        lost.set()

    with start_watched(end, grace_s=0.0, watch=seen_to_die(tmp_path, StartWatch())):
        assert lost.wait(20.0)
    assert told == ["GCS died while Ray was starting"]


def test_a_start_that_fails_by_itself_says_more_than_that_a_daemon_died(tmp_path: Path) -> None:
    """Ray's own error has the last lines of the daemon's log."""
    noticed, told = threading.Event(), list[str]()

    class Noticing(StartWatch):
        def look(self) -> str | None:
            if (dead := super().look()) is not None:
                noticed.set()
            return dead

    with start_watched(told.append, grace_s=600.0, watch=seen_to_die(tmp_path, Noticing())):
        assert noticed.wait(20.0)
    assert told == []


def test_a_ray_that_hangs_since_it_died_ends_the_process() -> None:
    """Whatever call of it hangs: the one that stops it, too."""
    lost, told = threading.Event(), list[str]()

    def end(what: str) -> None:
        told.append(what)
        lost.set()

    watch = LifeWatch(lambda: "GCS", end, hang_s=0.0, look_s=0.001)
    assert lost.wait(20.0)
    watch.close()
    assert told == ["GCS died, and Ray hangs since"]


def test_a_ray_that_is_stopped_after_it_died_ends_nothing() -> None:
    noticed, told = threading.Event(), list[str]()

    def dead() -> str:
        noticed.set()
        return "raylet"

    watch = LifeWatch(dead, told.append, hang_s=600.0, look_s=0.001)
    assert noticed.wait(20.0)
    watch.close()
    assert told == []
