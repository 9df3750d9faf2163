"""The log follower: every line once, numbered as a reader would, whatever the bytes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners import LogLine
from runners.log_follower import MAX_LINE_BYTES, LogFollower


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    path = tmp_path / "engine.log"
    path.write_bytes(b"")
    return path


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_lines_arrive_once_and_only_when_complete(log_path: Path) -> None:
    lines: list[LogLine] = []
    follower = LogFollower(log_path, lines.append)
    append(log_path, b"one\ntw")
    follower.read()
    assert [line.text for line in lines] == ["one"]
    append(log_path, b"o\r\n\nlast")
    follower.read()
    follower.finish()
    follower.finish()
    assert [(line.number, line.text) for line in lines] == [(1, "one"), (2, "two"), (3, ""), (4, "last")]
    assert follower.num_lines == 4


def test_invalid_utf8_is_replaced(log_path: Path) -> None:
    lines: list[LogLine] = []
    follower = LogFollower(log_path, lines.append)
    append(log_path, b"caf\xe9 \xff\xfe\n\xc3")
    follower.finish()
    assert [line.text for line in lines] == ["caf� ��", "�"]


def test_a_line_of_50_megabytes_is_cut_and_counts_as_one(log_path: Path) -> None:
    lines: list[LogLine] = []
    follower = LogFollower(log_path, lines.append)
    append(log_path, b"x" * 50_000_000 + b"\nafter\n")
    calls = 1
    while follower.read():
        calls += 1
    assert calls > 1, "the caller must get a chance to look at the process"
    follower.finish()
    assert [(line.number, len(line.text)) for line in lines] == [(1, MAX_LINE_BYTES), (2, len("after"))]
    assert follower.num_bytes == 50_000_007


def test_the_excerpt_holds_the_last_lines_and_short_ones(log_path: Path) -> None:
    follower = LogFollower(log_path, lambda line: None, num_excerpt_lines=3)
    append(log_path, b"".join(b"line %d\n" % number for number in range(1, 10)) + b"y" * 5000 + b"\n")
    follower.finish()
    assert [line.number for line in follower.excerpt] == [8, 9, 10]
    assert max(len(line.text) for line in follower.excerpt) == 1000
