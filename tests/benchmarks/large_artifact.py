"""A log of hundreds of megabytes from a node that does not see the study's folder: how much memory does its way take?

    python -m tests.benchmarks.large_artifact --mib 400

The worker is kept from seeing the folder by leaving the mark away. Memory is the growth of the largest resident size of
the agent's process (`ru_maxrss`) and the object store's own limit, which Ray keeps by writing pieces to its disk.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from pathlib import Path
from unittest import mock

import click

from runners import Exit, Phase, RunRecord, TrialRequest, ray_pool
from runners.artifact_return import PIECE_BYTES
from runners.ray_pool import OBJECT_STORE_BYTES, RayPool
from tests.runners.test_ray_pool import request_for
from tests.support.synthetic_engine import SyntheticEngine, measured

MIB = 2**20
SIZE = "TEST_LOG_MIB"
ENGINE = "tests.benchmarks.large_artifact:LoquaciousEngine"


class LoquaciousEngine(SyntheticEngine):
    """Writes a log of the size that its environment says."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Write, and answer."""
        folder = Path(request.artifact_dir)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "engine.log").open("wb") as log:
            for _ in range(int(request.environment[SIZE])):
                log.write(os.urandom(MIB))
        log_path = str(folder / "engine.log")
        measurement = measured(request)
        return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, log_path=log_path, measurement=measurement)


def peak_mib() -> float:
    """Return the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@click.command()
@click.option("--mib", type=int, default=400)
def main(mib: int) -> None:
    """Print the figures as JSON."""
    with tempfile.TemporaryDirectory(prefix="large-artifact-") as folder, mock.patch.object(ray_pool, "mark"):
        pool = RayPool(num_cpus=2)
        pool.start()
        try:
            request = request_for(ENGINE, Path(folder), **{SIZE: str(mib)})
            task = pool.submit([request])
            while not pool.wait([task], 1.0):
                continue
            before, began = peak_mib(), time.monotonic()
            records = pool.result(task)
            seconds = time.monotonic() - began
        finally:
            pool.stop()
        arrived = (Path(request.artifact_dir) / "engine.log").stat().st_size
    found = {
        "sent_mib": mib,
        "arrived_mib": round(arrived / MIB, 1),
        "is_measured": isinstance(records, list) and records[0].measurement is not None,
        "seconds": round(seconds, 1),
        "agent_grew_mib": round(peak_mib() - before, 1),
        "piece_mib": PIECE_BYTES / MIB,
        "object_store_mib": OBJECT_STORE_BYTES / MIB,
    }
    click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
