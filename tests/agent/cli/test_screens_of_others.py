"""What is not ours: a terminal of another encoding, a full disk under the output, a folder that is gone."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import environment


def read(*words: str, stdout: int | None = None, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "agent", *words]
    out = subprocess.PIPE if stdout is None else stdout
    return subprocess.run(command, env=environment(**variables), stdout=out, stderr=subprocess.PIPE, check=False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_sign_that_the_terminal_lacks_is_replaced(finished: Path, encoding: str) -> None:
    """A gain is a number with "×", a condition one with "≥": the rest is to be read all the same."""
    whole = read("best", "--home", str(finished), PYTHONIOENCODING="utf-8").stdout.decode()
    done = read("best", "--home", str(finished), PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding) == whole.encode(encoding, "replace").decode(encoding)
    assert "×" in whole


@pytest.mark.parametrize("words", [("status",), ("search", "--dry-run"), ("doctor",)], ids=" ".join)
def test_a_folder_that_was_removed_under_the_shell_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'rmdir "$PWD" && exec {shlex.join([sys.executable, "-m", "agent", *words])}'
    done = subprocess.run(["sh", "-c", line], cwd=gone, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: the present folder cannot be used")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("status",), ("deadends", "--json")], ids=" ".join)
def test_a_full_disk_under_the_output_is_said(finished: Path, words: tuple[str, ...], unbuffered: str) -> None:
    """With the exit code of a disk, and no traceback; also where Python still holds what it could not write."""
    home = ("--home", str(finished)) if not words[0].startswith("--") else ()
    with Path("/dev/full").open("wb") as full:
        done = read(*words, *home, stdout=full.fileno(), PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 5
    assert done.stderr.decode() == "Error: the output cannot be written: No space left on device\n"
