"""The load client as a process of its own: a job file in, a result file out, one line in the log for what matters."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import ValidationError

from runners.load_client.job import LoadJob, LoadResult

PREFIX = "[load_client]"
BENCHMARK_ERROR = f"{PREFIX} benchmark error:"
"""Begins the line that says why a load is unusable; the classifier has a rule for it."""

EXIT_MEASURED, EXIT_PROBLEM, EXIT_USAGE = 0, 1, 2


def load_command(job: LoadJob, folder: Path, python: str = sys.executable) -> tuple[str, ...]:
    """Write the job into a trial's folder and return the command that runs it.

    Args:
        job: What to send, and where to.
        folder: The trial's artifact folder; the result goes there as well.
        python: A Python that holds this package.
    """
    job_path, result_path = _job_path(folder), _result_path(folder)
    result_path.unlink(missing_ok=True)  # that of an earlier run would be taken for this one's
    job_path.write_text(job.model_dump_json(), encoding="utf-8")
    return (python, "-m", "runners.load_client", str(job_path), str(result_path))


def read_result(folder: Path) -> LoadResult | None:
    """Return what the process left in the folder, None when it ended before it had a result."""
    try:
        return LoadResult.model_validate_json(_result_path(folder).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def main(argv: list[str]) -> int:
    """Run the job of a file: exit code 0 with a measurement, 1 with a problem, 2 when the job cannot be run at all."""
    if len(argv) != 2:
        return _fail("usage: python -m runners.load_client JOB.json RESULT.json", EXIT_USAGE)
    try:
        job = LoadJob.model_validate_json(Path(argv[0]).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        return _fail(f"job {argv[0]}: {error}", EXIT_USAGE)
    from runners.load_client.load import run_load
    from runners.load_client.prompts import DatasetError

    try:
        result = run_load(job, say=_say)
    except (DatasetError, OSError) as error:
        return _fail(str(error), EXIT_USAGE)
    _write_whole(Path(argv[1]), result.model_dump_json())
    for note in result.notes:
        _say(f"note: {note}")
    if result.problem is not None:
        return _fail(result.problem, EXIT_PROBLEM)
    _say(f"done: own CPU share {result.own_cpu_share:.2f}")
    return EXIT_MEASURED


def _say(line: str) -> None:
    print(PREFIX, line, flush=True)


def _fail(problem: str, code: int) -> int:
    print(BENCHMARK_ERROR, " ".join(problem.split()), flush=True)
    return code


def _job_path(folder: Path) -> Path:
    return folder / "load-job.json"


def _result_path(folder: Path) -> Path:
    return folder / "load-result.json"


def _write_whole(path: Path, text: str) -> None:
    """Write a file that a reader sees whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
