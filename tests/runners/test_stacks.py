"""Stacks of processes that are about to be ended: by py-spy where it is, else by what Python writes at SIGABRT."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runners import stacks
from runners.stacks import dump_stacks
from tests.support.waiting import wait_until

PROGRAM = "import time\ndef in_a_collective():\n    print('up', flush=True)\n    time.sleep(600)\nin_a_collective()"


def start(log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", PROGRAM], stdout=output, stderr=output)
    wait_until(lambda: "up" in log.read_text())
    return process


@pytest.fixture
def no_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take py-spy away, wherever it is installed."""
    monkeypatch.setattr(stacks, "_py_spy", lambda tools: None)


@pytest.mark.usefixtures("no_py_spy")
def test_python_writes_its_stacks_and_the_log_keeps_its_last_words(tmp_path: Path) -> None:
    log, path = tmp_path / "engine.log", tmp_path / "stacks.txt"
    log.touch()
    process = start(log)
    assert dump_stacks([process.pid], path, abort_log=log)
    process.wait()
    text = path.read_text()
    assert "in_a_collective" in text
    assert "-- thread" in text, "what the kernel says comes first"
    assert log.read_text() == "up\n"


@pytest.mark.usefixtures("no_py_spy")
def test_without_leave_nothing_is_aborted(tmp_path: Path) -> None:
    log, path = tmp_path / "engine.log", tmp_path / "stacks.txt"
    log.touch()
    process = start(log)
    try:
        assert dump_stacks([process.pid], path)
        assert process.poll() is None
        assert "SIGABRT" not in path.read_text()
    finally:
        process.kill()
        process.wait()


def test_py_spy_of_the_engine_s_environment_is_found(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho Thread of $3\n")
    # Written by another process: a fork of this one elsewhere in the suite could hold it open, and it would not start.
    subprocess.run(["/usr/bin/install", "-m", "755", script, tmp_path / "py-spy"], check=True)
    process = subprocess.Popen(["/bin/sleep", "600"])
    try:
        # For an instant after its start a process has no command line, and counts as gone.
        wait_until(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes())
        assert dump_stacks([process.pid], tmp_path / "stacks.txt", tools=(tmp_path,))
        assert f"Thread of {process.pid}" in (tmp_path / "stacks.txt").read_text()
    finally:
        process.kill()
        process.wait()
