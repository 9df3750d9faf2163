"""Temporary folders of processes: there while the owner lives, gone afterwards, however it ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.session_folder import LOCK, SessionFolder
from tests.support.command_line import environment

OWNER = """
import sys, time
from pathlib import Path
from runners.session_folder import SessionFolder
folder = SessionFolder("run-", Path(sys.argv[1]))
print(folder.path, flush=True)
time.sleep(600)
"""


def folders(root: Path) -> list[Path]:
    """Return what is there."""
    return sorted(root.iterdir())


@contextmanager
def owner(root: Path) -> Iterator[Path]:
    """Return the folder of a process that is killed at the end."""
    command = [sys.executable, "-c", OWNER, str(root)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_is_removed_with_everything_in_it(tmp_path: Path) -> None:
    """A clean end leaves nothing; a second one does no harm."""
    folder = SessionFolder("run-", tmp_path)
    (folder.path / "session").mkdir()
    folder.remove()
    folder.remove()
    assert folders(tmp_path) == []


def test_the_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    """Two agents on one node do not take each other's folders away."""
    with owner(tmp_path) as path:
        mine = SessionFolder("run-", tmp_path)
        assert folders(tmp_path) == sorted([path, mine.path])
    mine.remove()


def test_the_folder_of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    """An agent that was killed leaves its folder for no longer than until the next one starts."""
    with owner(tmp_path) as path:
        pass
    assert path.exists()
    mine = SessionFolder("run-", tmp_path)
    assert folders(tmp_path) == [mine.path]
    mine.remove()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    """Neither another prefix nor a folder without a lock is touched."""
    others = [tmp_path / "other-1", tmp_path / "run-being-made"]
    for folder in others:
        folder.mkdir()
    (others[0] / LOCK).touch()
    SessionFolder("run-", tmp_path).remove()
    assert folders(tmp_path) == others
