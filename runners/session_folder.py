"""A temporary folder for as long as this process lives. What killed processes left behind is removed by the next one.

The folder's owner holds a lock on a file in it, which ends with the owner however it dies.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

LOCK = "owner.lock"


class SessionFolder:
    """A folder that is locked by this process."""

    def __init__(self, prefix: str, root: Path = Path("/tmp")) -> None:  # noqa: S108 - short, for sockets in it
        """Create it, and remove those of the same prefix whose owners are gone."""
        for folder in root.glob(f"{prefix}*"):
            _remove_if_abandoned(folder)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        self._lock = _locked_file(self.path)

    def remove(self) -> None:
        """Remove it with everything in it. May be called again."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _locked_file(folder: Path) -> IO[bytes]:
    """Lock before the file has its name, so that nobody ever sees it without its owner."""
    unnamed = folder / f"{LOCK}.new"
    file = unnamed.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    return file


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder whose lock nobody holds; one without a lock is just being made, or somebody else's."""
    with suppress(OSError), (folder / LOCK).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
