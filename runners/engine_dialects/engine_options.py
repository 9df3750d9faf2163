"""What the installed engine accepts: asked once in the user's own Python, then remembered on disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from runners.contract import Frozen

ASK = Path(__file__).parent / "inside" / "ask.py"
MARK = "AGENT-ENGINE "
IDENTITY_TIMEOUT_S = 60.0
OPTIONS_TIMEOUT_S = 300.0
"""A first import of an engine from a cold disk takes a minute and more."""
CACHE_VERSION = 2
"""Raised when the form of the answer changes: older answers are then asked for again."""
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_LOGGING_LEVEL": "ERROR"}


class EngineNotUsableError(RuntimeError):
    """The engine cannot be asked: it is not installed there, or cannot be imported. The text says what to do."""


class AcceptedOption(Frozen):
    """A long option of an engine."""

    kind: Literal["flag", "value", "optional", "list"]
    """A bare flag, one value, one value or none, or several values in a row."""
    choices: tuple[str, ...] = ()
    """The values it accepts; empty when anything may be given."""


class EngineOptions(Frozen):
    """What one version of an engine accepts."""

    engine: str
    version: str
    """As its package says it, such as `0.5.16` or `0.32.0+cpu`."""
    options: Mapping[str, AcceptedOption]
    """Long option without dashes → how it is given."""
    variables: frozenset[str] = frozenset()
    """Environment variables the engine declares; others of its own prefix it does not read."""

    def option(self, name: str) -> AcceptedOption | None:
        """Return an option by its name without dashes, or None where this version has none of exactly that name."""
        return self.options.get(name)

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers, (0, 5, 16), for comparisons; empty when it is not known."""
        found = re.match(r"\d+(?:\.\d+)*", self.version)
        return tuple(int(part) for part in found[0].split(".")) if found else ()


def ask_engine(
    engine: str, python: str | None, environment: Mapping[str, str], cache: Path | None = None
) -> EngineOptions:
    """Return what the engine accepts in an environment.

    A question without an import (0.1 s) finds out which installation it is; the answer of an installation that was
    asked before is read from disk.

    Args:
        engine: `sglang` or `vllm`.
        python: Python of the environment that holds the engine; None for ours.
        environment: The user's environment, in which that Python runs.
        cache: Folder of the remembered answers; None for `serving-search-agent/engines` in the user's cache folder.

    Raises:
        EngineNotUsableError: no such Python, no such engine there, or it cannot be imported.
    """
    where = python or sys.executable
    identity = _ask(engine, where, "identity", environment, IDENTITY_TIMEOUT_S)
    if identity.get("missing"):
        raise EngineNotUsableError(
            f"{where} has no {engine}: name the Python of the environment that holds it, or install it there "
            f"({where} -m pip install {engine})"
        )
    folder = cache or _cache_folder(environment)
    key = hashlib.sha256(json.dumps([CACHE_VERSION, where, engine, identity], sort_keys=True).encode()).hexdigest()
    path = folder / f"{engine}-{key[:16]}.json"
    known = _read(path)
    if known is not None:
        return known
    answer = _ask(engine, where, "options", environment, OPTIONS_TIMEOUT_S)
    options = EngineOptions.model_validate({"engine": engine, **answer})
    _write(path, options)
    return options


class InstalledPython(Frozen):
    """The Python environment that holds an engine, as far as packages can be looked up in it without running them."""

    python: str
    """Version of that Python."""
    paths: tuple[str, ...]
    """Folders that it imports from."""


def ask_python(python: str, environment: Mapping[str, str]) -> InstalledPython:
    """Return what a Python imports from; nothing of an engine is imported for it.

    Raises:
        EngineNotUsableError: it cannot be run.
    """
    return InstalledPython.model_validate(_ask("python", python, "paths", environment, IDENTITY_TIMEOUT_S))


def is_installed(engine: str, python: str, environment: Mapping[str, str]) -> bool:
    """Return whether a Python has the engine, without importing it.

    Raises:
        EngineNotUsableError: that Python cannot be run.
    """
    return not _ask(engine, python, "identity", environment, IDENTITY_TIMEOUT_S).get("missing")


def _ask(
    engine: str, python: str, question: str, environment: Mapping[str, str], timeout_s: float
) -> dict[str, object]:
    command = [python, str(ASK), engine, question]
    try:  # an engine that is imported leaves folders in TMPDIR, as torch does for its compiler
        place = environment.get("TMPDIR", "")
        with tempfile.TemporaryDirectory(prefix="agent-ask-", dir=place if Path(place).is_dir() else None) as scratch:
            variables = {**QUIET, **environment, "TMPDIR": scratch}
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout_s, env=variables, check=False
            )
    except OSError as error:
        raise EngineNotUsableError(f"{python} cannot be run: {error.strerror}. Name the Python of {engine}") from error
    except subprocess.TimeoutExpired as error:
        raise EngineNotUsableError(f"{engine} in {python} did not answer within {timeout_s:.0f} s") from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise EngineNotUsableError(f"{engine} in {python} cannot be imported: {last}")
    answer: dict[str, object] = json.loads(lines[-1].removeprefix(MARK))
    return answer


def _cache_folder(environment: Mapping[str, str]) -> Path:
    root = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    return Path(root) / "serving-search-agent" / "engines"


def _read(path: Path) -> EngineOptions | None:
    """Return a remembered answer; one that is missing, torn or of another form is asked for again."""
    try:
        return EngineOptions.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(path: Path, options: EngineOptions) -> None:
    """Remember an answer where that is possible; a cache that cannot be written only costs time."""
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(options.model_dump_json(), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return
