"""State that is this user's alone: what is written is readable by nobody else, and goes where it was meant to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import StorageError

PRIVATE_UMASK = 0o077
"""Files 0600, folders 0700: the study database and the engines' own logs hold what was really given, secrets too."""
ROOT_UID = 0


@contextmanager
def private_files() -> Iterator[None]:
    """Let everything that this process and its children make be readable by this user alone."""
    before = os.umask(PRIVATE_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def check_own(top: Path, folder: Path) -> None:
    """Look at every step from `top` down to `folder`, as far as there is one.

    A link of one's own is a way to put the artifacts on another disk; one that somebody else planted would send logs
    to a place of their choice.

    Raises:
        StorageError: a step is a link or a folder of another user, or no folder at all.
    """
    step = top
    for part in folder.relative_to(top).parts:
        step = step / part
        try:
            found = step.lstat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"{step}: {error.strerror}") from error
        if found.st_uid not in (os.geteuid(), ROOT_UID):
            kind = "link" if stat.S_ISLNK(found.st_mode) else "file or folder"
            raise StorageError(f"{step} is a {kind} of another user: remove it, or choose another --home")
        if not step.is_dir():
            raise StorageError(f"{step} is no folder, and trials are to be kept there: remove it")
