"""The tests' own Ray cluster: whoever made it may be ended in any way, and nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.cookies import find_processes, kill_processes
from tests.support.ray_cluster import MARK, ROOT
from tests.support.waiting import wait_until

BENCHMARK = """
import time
from tests.support.ray_cluster import MARK, ray_cluster

with ray_cluster() as cluster:
    cluster.add(1)
    print(cluster.variables[MARK], cluster.folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def benchmark() -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """A process of its own group that keeps a cluster of one node, the cluster's mark and its folder."""
    command, pipe = [sys.executable, "-c", BENCHMARK], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=pipe, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        mark, folder = process.stdout.readline().split()
        try:
            yield process, mark, Path(folder)
        finally:
            process.kill()
            kill_processes(mark, variable=MARK)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_benchmark_that_is_ended_takes_its_cluster_along(
    benchmark: tuple[subprocess.Popen[str], str, Path], number: signal.Signals
) -> None:
    """As by `timeout`, which signals the whole group: the GCS would outlive it."""
    process, mark, folder = benchmark
    assert len(find_processes(mark, variable=MARK)) >= 3  # the cluster's own process, the GCS, the raylet
    os.killpg(process.pid, number)
    wait_until(lambda: not find_processes(mark, variable=MARK), 30.0)
    wait_until(lambda: not folder.exists())
