"""Follows the log of a running engine, line by line, whatever bytes the engine writes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from runners.contract import LogLine

CHUNK_BYTES = 1 << 20
MAX_CHUNKS = 8
"""Chunks taken in one go, so that a flood of output does not keep the caller from watching the process."""
MAX_LINE_BYTES = 16 * 1024
"""What is kept of a line; engines print whole tensors."""
MAX_EXCERPT_CHARACTERS = 1000


class LogFollower:
    """Reads what was added to a file since the last call and hands on every complete line."""

    def __init__(self, path: Path, on_line: Callable[[LogLine], None], *, num_excerpt_lines: int = 60) -> None:
        """Follow the existing file `path` from its beginning."""
        self.num_lines = 0
        self.num_bytes = 0
        self._on_line = on_line
        self._excerpt: deque[LogLine] = deque(maxlen=num_excerpt_lines)
        self._line = bytearray()
        self._has_partial_line = False
        self._descriptor = os.open(path, os.O_RDONLY)

    @property
    def excerpt(self) -> tuple[LogLine, ...]:
        """Return the last lines, each cut to a length that can be shown and stored."""
        return tuple(self._excerpt)

    def read(self) -> bool:
        """Take in what is new; return False when the end of the file was reached."""
        for _ in range(MAX_CHUNKS):
            chunk = os.read(self._descriptor, CHUNK_BYTES)
            if not chunk:
                return False
            self._take(chunk)
        return True

    def finish(self) -> None:
        """Read to the end, hand on a last line that has no line end, and close the file. May be called again."""
        if self._descriptor < 0:
            return
        while self.read():
            pass
        if self._has_partial_line:
            self._end_line()
        os.close(self._descriptor)
        self._descriptor = -1

    def _take(self, chunk: bytes) -> None:
        self.num_bytes += len(chunk)
        *complete, partial = chunk.split(b"\n")
        for piece in complete:
            self._append(piece)
            self._end_line()
        self._append(partial)
        self._has_partial_line = self._has_partial_line or bool(partial)

    def _append(self, piece: bytes) -> None:
        self._line += piece[: MAX_LINE_BYTES - len(self._line)]

    def _end_line(self) -> None:
        self.num_lines += 1
        text = self._line.decode("utf-8", errors="replace").rstrip("\r")
        self._line.clear()
        self._has_partial_line = False
        self._excerpt.append(LogLine(number=self.num_lines, text=text[:MAX_EXCERPT_CHARACTERS]))
        self._on_line(LogLine(number=self.num_lines, text=text))
