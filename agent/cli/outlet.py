"""Standard output of a search, which goes on when nobody reads it any more.

A closed terminal answers EIO, a dead reader (`agent search | tee log`, where Ctrl-C ends both) EPIPE. A search that
prints into either has things to close first, and an exit code to leave with.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, TextIO

GONE = (errno.EPIPE, errno.EIO)


class Outlet:
    """A text stream that swallows what is written to it once its reader is gone; everything else is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        """Wrap a stream."""
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, as far as there is somebody who reads."""
        self._while_read(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, as far as there is somebody who reads."""
        self._while_read(self._stream.flush)

    def _while_read(self, call: Callable[[], object]) -> None:
        try:
            call()
        except OSError as error:
            if error.errno not in GONE:
                raise
            send_nowhere(self._stream)


def send_nowhere(stream: TextIO) -> None:
    """Send the rest nowhere, what the stream still holds included: Python writes that when it ends, or fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
