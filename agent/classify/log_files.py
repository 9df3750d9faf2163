"""Logs as users name them: a file, a compressed one, or standard input; any content, never more than is there."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from agent.classify.log_stream import ByteSource
from agent.errors import UsageError

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log that can be read."""

    source: ByteSource
    max_bytes: int | None
    """Size of the file when it was opened, so that a growing log has an end; None where that is not known."""


@contextmanager
def open_log(name: str) -> Iterator[OpenedLog]:
    """Open a log.

    Raises:
        UsageError: There is no such file, or it is none that can be read.
    """
    if name == STANDARD_INPUT:
        yield OpenedLog(sys.stdin.buffer, None)
        return
    try:
        file = open(name, "rb", opener=_without_waiting)  # noqa: SIM115 (closed below)
    except OSError as error:
        raise UsageError(f"LOG {name}: cannot be read: {error.strerror}") from error
    with file:
        yield _opened(file, name)


def _without_waiting(name: str, flags: int) -> int:
    """Open without waiting for the other end of a pipe that nobody holds; reading waits as always."""
    descriptor = os.open(name, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _opened(file: BinaryIO, name: str) -> OpenedLog:
    status = os.fstat(file.fileno())
    if stat.S_ISCHR(status.st_mode) and not file.isatty():
        raise UsageError(f"LOG {name}: cannot be read: a device, not a log")
    if not stat.S_ISREG(status.st_mode):
        return OpenedLog(file, None)
    is_compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    file.seek(0)
    return OpenedLog(_Decompressed(file), None) if is_compressed else OpenedLog(file, status.st_size)


class _Decompressed:
    """A gzip file up to where it ends or is damaged: what could be read is worth a look."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=file, mode="rb")

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        try:
            return self._file.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""
