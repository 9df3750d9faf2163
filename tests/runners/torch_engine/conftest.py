"""Launches of the engine as its users start it: by its command line, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]

# One process that runs several launches in turn: a leader never touches torch's devices, so it may fork again.
SEVERAL_LAUNCHES = """
import json, sys
from runners.torch_engine.__main__ import main
sys.exit(max(main(argv) for argv in json.load(sys.stdin)))
"""


@dataclass(frozen=True)
class Launch:
    """What one launch left behind."""

    exit_code: int
    stdout: str
    stderr: str
    result: dict[str, Any] | None


def environment() -> dict[str, str]:
    """The environment of a launch: the user's, with the repository importable."""
    return os.environ | {"PYTHONPATH": str(REPOSITORY)}


def run_engine(*flags: str, result: Path | None = None) -> Launch:
    """Run one launch of the tiny model to its end."""
    command = [sys.executable, "-m", "runners.torch_engine", "--preset", "tiny", *flags]
    if result is not None:
        command += ["--result", str(result)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    found = json.loads(result.read_text()) if result is not None and result.exists() else None
    return Launch(done.returncode, done.stdout, done.stderr, found)


@pytest.fixture
def results_of(tmp_path: Path) -> Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]]:
    """Run several launches of the tiny model in one process and return their results."""

    def run(launches: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        files = [tmp_path / f"result-{index}.json" for index in range(len(launches))]
        argvs = [
            ["--preset", "tiny", *flags, "--result", str(file)] for flags, file in zip(launches, files, strict=True)
        ]
        done = subprocess.run(
            [sys.executable, "-c", SEVERAL_LAUNCHES],
            input=json.dumps(argvs),
            capture_output=True,
            text=True,
            env=environment(),
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(file.read_text()) for file in files]

    return run


@pytest.fixture
def engine(tmp_path: Path) -> Callable[..., Launch]:
    """Run one launch of the tiny model; its result is read back."""
    return lambda *flags: run_engine(*flags, result=tmp_path / "result.json")
