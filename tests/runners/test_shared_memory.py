"""Shared memory: what a launch left is removed, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.processes import ProcessKey
from runners.shared_memory import NOTE, SHM_ROOT, SharedMemoryGuard, remove_noted

HOLD = "import mmap, os, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close(); print(); input()"


@pytest.fixture
def mark() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    for path in SHM_ROOT.glob(f"*{value}*"):
        path.unlink()


def make_segment(name: str) -> Path:
    path = SHM_ROOT / name
    path.write_bytes(b"x" * 4096)
    return path


def hold(path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_a_segment_that_the_launch_had_mapped_is_removed_whatever_its_name(mark: str) -> None:
    guard = SharedMemoryGuard()
    segment = make_segment(f"anything-{mark}")
    process = hold(segment)
    assert guard.has_news()
    guard.attribute([process.pid])
    assert not guard.has_news()
    end(process)
    assert guard.clean([]) == ()
    assert not segment.exists()


def test_a_segment_in_use_by_somebody_else_stays(mark: str) -> None:
    guard = SharedMemoryGuard()
    segment = make_segment(f"psm_{mark}")
    process = hold(segment)
    assert guard.clean([ProcessKey(process.pid + 1, 0)]) == ()
    assert segment.exists()
    end(process)


def test_a_file_that_somebody_put_there_meanwhile_stays(mark: str) -> None:
    """The folder is also used as a fast disk: a closed file of no known name proves nothing."""
    guard = SharedMemoryGuard()
    segment = make_segment(f"model-{mark}.safetensors")
    assert guard.clean([]) == ()
    assert segment.exists()


def test_what_was_there_before_stays_even_if_the_launch_used_it(mark: str) -> None:
    segment = make_segment(f"psm_{mark}")
    guard = SharedMemoryGuard()
    process = hold(segment)
    guard.attribute([process.pid])
    end(process)
    assert guard.clean([]) == ()
    assert segment.exists()


def test_a_known_name_with_a_pid_of_the_launch_is_removed(mark: str) -> None:
    guard = SharedMemoryGuard()
    segment = make_segment(f"torch_4194999_{mark}")
    assert guard.clean([ProcessKey(4194999, os.getpid())]) == ()
    assert not segment.exists()


SEMAPHORE = """
import multiprocessing
lock = multiprocessing.get_context("spawn").Lock()
print(lock._semlock.name, flush=True)
input()
"""


def test_a_semaphore_of_another_launch_that_is_just_starting_stays() -> None:
    """Its name stands in no process's maps, for the C library makes it under another one; without it, spawn fails."""
    guard = SharedMemoryGuard()
    command = [sys.executable, "-c", SEMAPHORE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = SHM_ROOT / f"sem.{process.stdout.readline().strip().lstrip('/')}"
        assert path.exists()
        assert guard.clean([]) == ()
        assert path.exists()
        process.communicate("\n")


def test_what_a_killed_runner_had_noted_goes_away_once_nobody_uses_it(mark: str, tmp_path: Path) -> None:
    guard, note = SharedMemoryGuard(), tmp_path / NOTE
    segment = make_segment(f"psm_{mark}")
    process = hold(segment)
    guard.attribute([process.pid])
    guard.note(note)
    assert remove_noted(note) == (), "its engine still lives"
    end(process)
    assert remove_noted(note) == (segment.name,)
    assert not segment.exists()


def test_a_name_that_somebody_else_took_since_is_left_alone(mark: str, tmp_path: Path) -> None:
    guard, note = SharedMemoryGuard(), tmp_path / NOTE
    segment = make_segment(f"psm_{mark}")
    process = hold(segment)
    guard.attribute([process.pid])
    guard.note(note)
    end(process)
    kept = make_segment(f"other-{mark}")
    segment.unlink()
    kept.rename(segment)
    assert remove_noted(note) == ()
    assert segment.exists()


@pytest.mark.parametrize("content", [None, "", "[[1"])
def test_a_note_that_is_not_there_or_cut_off_says_nothing(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / NOTE).write_text(content, encoding="utf-8")
    assert remove_noted(tmp_path / NOTE) == ()
