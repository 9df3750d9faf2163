"""A log as a stream of blocks of cleaned, numbered lines: one pass, bounded memory, any bytes.

A block is what is searched at once; only where something was found is it taken apart into lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

BLOCK_BYTES = 128 * 1024
PART_BYTES = 4 * 1024
PIECE_BYTES = 64 * 1024
"""A longer line comes in pieces under one number, so that a 50 MB line needs no 50 MB."""
OVERLAP_BYTES = 512
"""Bytes of a piece that the next one repeats, so that no message is lost where the line was cut."""

# Each begins with plain text, which is what makes them fast on megabytes without any of it.
_ANSI = re.compile(rb"\x1b\[[0-9;:?]*[a-zA-Z]")
_COLOUR_WITHOUT_ESCAPE = re.compile(rb"\n\[[0-9;]{1,8}m")
"""Pasted logs often lost the escape byte."""
_RANK_AT_START = re.compile(rb"(?:\[rank\d{1,5}\]:?[ \t]?){1,3}")
_RANK_PREFIX = re.compile(rb"\n\[rank\d{1,5}\]:?[ \t]?(?:\[rank\d{1,5}\]:?[ \t]?){0,2}")


class ByteSource(Protocol):
    """What a log is read from: a file, a decompressor, standard input."""

    def read(self, size: int = ..., /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A cleaned line, or a piece of an overlong one."""

    number: int
    """Line number in the file, from 1."""
    content: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, or a piece of an overlong one, without colour codes and rank prefixes."""

    number: int
    """Number of its first line."""
    text: bytes

    def lines(self) -> Iterator[StreamLine]:
        """Yield the non-empty lines; a progress bar redraws its line, and what came between is still a message."""
        for offset, raw in enumerate(self.text.split(b"\n")):
            for part in raw.split(b"\r") if b"\r" in raw else (raw,):
                content = (
                    _RANK_AT_START.sub(b"", part, count=1).rstrip() if part.startswith(b"[rank") else part.rstrip()
                )
                if content:
                    yield StreamLine(self.number + offset, content)

    def parts(self) -> Iterator[Block]:
        """Yield the block in smaller ones."""
        number, start = self.number, 0
        while start < len(self.text):
            end = self.text.find(b"\n", start + PART_BYTES) + 1 or len(self.text)
            yield Block(number, self.text[start:end])
            number += self.text.count(b"\n", start, end)
            start = end

    @property
    def searchable(self) -> bytes:
        """The text with every line end as a line feed."""
        return self.text.replace(b"\r", b"\n") if b"\r" in self.text else self.text


def stream_blocks(source: ByteSource, max_bytes: int | None = None) -> Iterator[Block]:
    """Yield the log in blocks.

    Args:
        source: Where the bytes come from.
        max_bytes: Where to stop although there is more: the size of a growing file when it was opened.
    """
    number, rest = 1, b""
    for chunk in _chunks(source, max_bytes):
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        if end:
            yield Block(number, _clean(text[:end]))
            number += text.count(b"\n", 0, end)
        rest = text[end:]
        if len(rest) > PIECE_BYTES:
            yield from _pieces(number, rest)
            rest = rest[-OVERLAP_BYTES:]
    if rest:
        yield Block(number, _clean(rest))


def stream_lines(path: Path) -> Iterator[StreamLine]:
    """Yield the non-empty cleaned lines of a file."""
    with path.open("rb") as file:
        for block in stream_blocks(file):
            yield from block.lines()


def _chunks(source: ByteSource, max_bytes: int | None) -> Iterator[bytes]:
    left = max_bytes
    while left is None or left > 0:
        chunk = source.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk


def _pieces(number: int, line: bytes) -> Iterator[Block]:
    step = PIECE_BYTES - OVERLAP_BYTES
    for start in range(0, len(line), step):
        yield Block(number, _clean(line[start : start + PIECE_BYTES]))


def _clean(raw: bytes) -> bytes:
    text = b"\n" + (_ANSI.sub(b"", raw) if b"\x1b" in raw else raw)
    text = _COLOUR_WITHOUT_ESCAPE.sub(b"\n", text)
    if b"[rank" in text:
        text = _RANK_PREFIX.sub(b"\n", text)
    return text[1:]
