"""The load client: sends a workload to a server that is ready, and says what came back."""

from __future__ import annotations

from runners.load_client.figures import UnusableLoadError, measurement_of
from runners.load_client.job import Api, LevelLoad, LoadJob, LoadResult, RequestRecord, Speculation
from runners.load_client.process import BENCHMARK_ERROR, load_command, read_result
from runners.load_client.readiness import NotServedError, serve_one_completion

__all__ = [
    "BENCHMARK_ERROR",
    "Api",
    "LevelLoad",
    "LoadJob",
    "LoadResult",
    "NotServedError",
    "RequestRecord",
    "Speculation",
    "UnusableLoadError",
    "load_command",
    "measurement_of",
    "read_result",
    "run_load",
    "serve_one_completion",
]


def run_load(job: LoadJob) -> LoadResult:
    """Run a load in this process and return what was seen; a problem of the server's is part of the result.

    Raises:
        DatasetError: the job's dataset cannot be used.
        OSError: the records cannot be written.
    """
    from runners.load_client.load import run_load as run  # loads aiohttp, which a command line need not wait for

    return run(job)
