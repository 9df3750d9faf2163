"""Which Python holds the engine: the one that was named, the base command's, or the first one at hand that has it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.spec import StudySpec
from runners.engine_dialects import EngineNotUsableError, EngineOptions, ask_engine, is_installed

KEY = "engine_python"


def ask_installed(
    spec: StudySpec, engine: str, of_command: str | None, environment: Mapping[str, str]
) -> tuple[str, EngineOptions]:
    """Return the Python that holds the engine, and what the engine in there accepts.

    Args:
        spec: The study; its `engine_python` is the last word.
        engine: `sglang` or `vllm`.
        of_command: Python that the base command shows, or None.
        environment: The environment in which that Python runs.

    Raises:
        UsageError, SpecificationError: no such Python, no such engine in it, or one that cannot be imported.
    """
    if spec.engine_python is not None:
        python, key = _python_of(spec, spec.engine_python), KEY
    elif of_command is not None:
        python, key = of_command, "base_cmd"
    else:
        python, key = _first_that_has_it(spec, engine, environment), "engine"
    try:
        return python, ask_engine(engine, python, environment)
    except EngineNotUsableError as error:
        raise spec.error(str(error), key) from error


def _python_of(spec: StudySpec, written: str) -> str:
    """Return the absolute path of a Python; links are kept, since a virtual environment is told by its link."""
    try:
        path = Path(written).expanduser()
        path = path / "bin" / "python" if path.is_dir() else path
        found = shutil.which(path)
        problem = "is no program" if found is None and path.exists() else "does not exist"
    except (OSError, RuntimeError, ValueError) as error:  # too long, a home of nobody, a NUL
        raise spec.error(f"this is no path: {error}", KEY) from error
    if found is None:
        raise spec.error(f"'{path}' {problem}: name the Python of the engine's environment, or that folder", KEY)
    return str(Path(found).absolute())


def _first_that_has_it(spec: StudySpec, engine: str, environment: Mapping[str, str]) -> str:
    looked: list[str] = []
    for python in _at_hand(engine):
        looked.append(python)
        try:
            if is_installed(engine, python, environment):
                return python
        except EngineNotUsableError:  # a `python3` that does not run: the next one may
            continue
    raise spec.error(
        f"no {engine} in {', '.join(looked)}. Name the Python that has it with --engine-python, or install it: "
        f"python3 -m venv ~/{engine} && ~/{engine}/bin/pip install {engine}, then --engine-python ~/{engine}",
        "engine",
    )


def _at_hand(engine: str) -> Iterator[str]:
    """Yield the Python beside the engine's own program on PATH, `python3` on PATH, and ours."""
    program, found = shutil.which(engine), shutil.which("python3")
    beside = Path(program).with_name("python") if program else None
    candidates = (beside if beside is not None and beside.exists() else None, found, sys.executable)
    yield from dict.fromkeys(str(Path(path).absolute()) for path in candidates if path is not None)
