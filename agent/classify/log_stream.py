"""A log file as a stream of cleaned, numbered lines: one pass, bounded memory, any bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 64 * 1024
"""A longer line comes in pieces under one number, so that a 50 MB line needs no 50 MB."""
OVERLAP_BYTES = 512
"""Bytes of a piece that the next one repeats, so that no message is lost where the line was cut."""

_ANSI = re.compile(rb"\x1b\[[0-9;:?]*[a-zA-Z]")
_RANK_PREFIX = re.compile(rb"(?:\[rank\d{1,5}\]:?[ \t]?){1,3}")


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A cleaned line, or a piece of an overlong one."""

    number: int
    """Line number in the file, from 1."""
    content: bytes


def stream_lines(path: Path) -> Iterator[StreamLine]:
    """Yield the non-empty lines of the file without colour codes, rank prefixes and line ends."""
    with path.open("rb") as file:
        for number, raw in _numbered_pieces(file):
            for part in raw.split(b"\r"):  # a progress bar redraws its line: what came between is still a message
                content = _clean(part)
                if content:
                    yield StreamLine(number, content)


def _numbered_pieces(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 1
    tail = b""
    while piece := file.readline(PIECE_BYTES):
        yield number, tail + piece
        if piece.endswith(b"\n"):
            number += 1
            tail = b""
        else:
            tail = piece[-OVERLAP_BYTES:]


def _clean(raw: bytes) -> bytes:
    text = _ANSI.sub(b"", raw) if b"\x1b" in raw else raw
    prefix = _RANK_PREFIX.match(text)
    return text[prefix.end() if prefix else 0 :].rstrip()
