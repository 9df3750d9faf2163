"""Which Python carries out the probes of a server: the engine's own, since it brings its own torch and NCCL."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from runners import torch_engine
from runners.contract import Command, EngineSettings
from runners.engine_dialects import EngineNotUsableError, ask_python

STANDALONE = Path(torch_engine.__file__).with_name("standalone.py")
OLDEST_PYTHON = (3, 10)
"""What the probe server's files are written for."""


def probe_server(settings: EngineSettings, environment: Mapping[str, str]) -> Command:
    """Return the command of the probe server: in the engine's Python where that has torch, else in ours.

    Which one it was stands in every measurement (`ProbeMeasurement.software`).
    """
    python = settings.python
    if python is None or not _has_torch(python, environment):
        python = sys.executable
    return Command(argv=(python, str(STANDALONE)))


def _has_torch(python: str, environment: Mapping[str, str]) -> bool:
    try:
        found = ask_python(python, environment)
    except EngineNotUsableError:
        return False
    version = tuple(int(part) for part in found.python.split(".")[:2])
    return version >= OLDEST_PYTHON and PathFinder.find_spec("torch", [*found.paths]) is not None
