"""Read a file that a user named: bounded in size and in time, whatever stands at that path."""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path

from search_spaces.errors import SpecificationError

PIPE_S = 3.0
"""How long a pipe, such as `<(…)` of a shell, may stay silent."""
_BLOCK = 2**16


class UnreadableFileError(SpecificationError):
    """There is no file of text at the path: nothing of it can be wrong in a line. Whoever knows says who named it."""


def read_text(path: Path, max_bytes: int) -> str:
    """Return the text of a file, without its byte order mark.

    Raises:
        UnreadableFileError: it is missing, a folder, silent, or none of our business.
        SpecificationError: too large, or not UTF-8; with the line.
    """
    try:
        content = _content(path, max_bytes + 1)
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror or error}", path=path) from error
    except ValueError as error:  # a NUL in the path
        raise UnreadableFileError(f"cannot be read: {error}", path=Path(str(path).replace("\0", "␀"))) from error
    if len(content) > max_bytes:
        line = content.count(b"\n") + 1
        problem = f"larger than {max_bytes / 2**20:g} MiB: this is not a file that somebody wrote"
        raise SpecificationError(problem, path=path, line=line)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecificationError(f"not UTF-8 text ({error.reason})", path=path, line=line) from error


def _content(path: Path, most: int) -> bytes:
    """Opening without waiting: a pipe that nobody writes to would hold the caller for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        deadline = time.monotonic() + PIPE_S
        blocks, left = [], most
        while left > 0 and (is_regular or _is_readable(descriptor, deadline)):
            block = os.read(descriptor, min(_BLOCK, left))
            if not block:
                break
            blocks.append(block)
            left -= len(block)
        return b"".join(blocks)
    finally:
        os.close(descriptor)


def _is_readable(descriptor: int, deadline: float) -> bool:
    """Wait for a pipe or a device. Raises TimeoutError when it stays silent."""
    ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
    if not ready:
        raise TimeoutError(None, f"it gave nothing within {PIPE_S:g} s")
    return True
