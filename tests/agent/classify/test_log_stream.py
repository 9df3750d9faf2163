"""Logs are read once, in bounded memory, whatever bytes they hold."""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.classify.evidence import LogEvidence
from agent.classify.log_stream import OVERLAP_BYTES, PIECE_BYTES, stream_blocks, stream_lines
from agent.classify.registry import RULES
from agent.classify.scanner import LogScanner

SCANNER = LogScanner(RULES)
OOM = b"CUDA out of memory"


def scan(path: Path) -> LogEvidence:
    with path.open("rb") as file:
        return SCANNER.scan(stream_blocks(file))


def lines_of(path: Path, content: bytes) -> list[tuple[int, bytes]]:
    path.write_bytes(content)
    return [(line.number, line.content) for line in stream_lines(path)]


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (b"\x1b[1;36m(Worker)\x1b[0m failed\x1b[K\r\n", b"(Worker) failed"),
        (b"[rank0] RuntimeError: x\n", b"RuntimeError: x"),
        (b"[rank1]: RuntimeError: x\n", b"RuntimeError: x"),
        (b"[rank1]:[E814 ProcessGroupNCCL.cpp:607] x\n", b"[E814 ProcessGroupNCCL.cpp:607] x"),
        (b"\x1b[31m[rank3]\x1b[0m: x\n", b"x"),
        (b"  indented stays\n", b"  indented stays"),
        (b"\xff\xfe\x00 any bytes\n", b"\xff\xfe\x00 any bytes"),
    ],
)
def test_wrappers_around_a_line_are_taken_off(raw: bytes, clean: bytes, tmp_path: Path) -> None:
    assert lines_of(tmp_path / "log", raw) == [(1, clean)]


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path: Path) -> None:
    content = b"one\n\n 10%\r 20%\rthree\nfour"
    expected = [(1, b"one"), (3, b" 10%"), (3, b" 20%"), (3, b"three"), (4, b"four")]
    assert lines_of(tmp_path / "log", content) == expected


def test_a_line_of_50_mb_needs_little_memory_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(OOM + b"\nafter\n")
    tracemalloc.start()
    evidence = scan(path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4_000_000
    assert [(hit.rule.reason, hit.number) for hit in evidence.hits if hit.rule.code == "M001"] == [("gpu_oom", 1)]
    assert next(line.number for line in evidence.telling if line.text == "after") == 2


@pytest.mark.parametrize("offset", range(0, len(OOM) + 1, 3))
def test_a_message_across_a_cut_is_found(offset: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (PIECE_BYTES - offset) + OOM + b"\n")
    assert "M001" in {hit.rule.code for hit in scan(path).hits}


def test_each_byte_is_looked_at_once(tmp_path: Path) -> None:
    """The work is the bytes given to the matcher, and RE2's work is linear in them."""
    path = tmp_path / "log"
    content = b"".join(b"y" * length + b"\n" for length in (10, 1_000, 300_000, 7, 2_000_000))
    path.write_bytes(content)
    looked_at = sum(len(line.content) for line in stream_lines(path))
    assert looked_at <= len(content) * (1 + 2 * OVERLAP_BYTES / PIECE_BYTES)


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_any_bytes_can_be_scanned(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(content)
        evidence = scan(path)
    last = content.count(b"\n") + 1
    assert all(1 <= line.number <= last and len(line.text) <= 500 for line in evidence.telling)


@settings(max_examples=50, deadline=None)
@given(noise=st.lists(st.binary(max_size=60), max_size=20))
def test_a_message_is_found_in_any_noise(noise: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(b"\n".join(noise) + b"\n" + OOM + b"\n" + b"\n".join(noise))
        codes = {hit.rule.code for hit in scan(path).hits}
    assert "M001" in codes
