"""A search prints on when nobody reads: that is no reason to leave its trials open."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, signal, sys
from agent.cli.screen import make_console
from agent.process_end import signals
console = make_console(outlives_reader=True)
with signals(console) as interruption:
    console.print("up")
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGINT)
    console.print("printed to nobody")
    sys.exit(7 if str(interruption) == "SIGINT" else 1)
"""


def begun(stdout: int, **options: object) -> subprocess.Popen[bytes]:
    """Start a program that prints, waits for a line, is interrupted and prints again."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_an_interrupted_search_ends_as_it_should_when_its_reader_is_gone(kind: str) -> None:
    """`agent search | tee log`, where Ctrl-C ends both; or its terminal was closed."""
    reader, writer = os.pipe() if kind == "pipe" else pty.openpty()
    process = begun(writer)
    os.close(writer)
    assert os.read(reader, 2) == b"up"
    os.close(reader)
    _, said = process.communicate(b"\n", timeout=60)
    assert (process.returncode, said) == (7, b"")


def test_the_output_of_a_search_that_is_read_arrives(tmp_path: Path) -> None:
    """The very same text as without the wrapper, in order."""
    path = tmp_path / "out.txt"
    with path.open("wb") as file:
        process = begun(file.fileno())
    process.communicate(b"\n", timeout=60)
    assert process.returncode == 7
    lines = path.read_text(encoding="utf-8").split("\n")
    assert (lines[0], lines[-2]) == ("up", "printed to nobody")


def test_a_disk_that_is_full_is_no_reader_that_is_gone() -> None:
    """Somebody wants what is written there, and learns that it is not."""
    process = begun(os.open("/dev/full", os.O_WRONLY))
    _, said = process.communicate(b"\n", timeout=60)
    assert b"No space left on device" in said
    assert process.returncode not in (0, 7, -signal.SIGINT)
