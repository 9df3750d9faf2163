"""The same through a real tracking server on loopback: its client, its artifact proxy, its limits."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.mirror import MlflowMirror, check_tracking_uri
from agent.mirror.client import connect
from tests.agent.mirror.samples import rich
from tests.support.waiting import wait_until


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, store: Any) -> Iterator[str]:
    home, port = tmp_path_factory.mktemp("server"), _free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{home}/mlflow.db", "--artifacts-destination", f"{home}/artifacts"]
    with subprocess.Popen(
        command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            assert any("startup complete" in line for line in lines), "the server did not start"
            url = f"http://127.0.0.1:{port}"
            wait_until(lambda: check_tracking_uri(url) is None, 60.0)  # it says so before it listens
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()


def _content(client: Any, experiment_id: str) -> dict[str, Any]:
    ignored = ("agent.mirrored", "mlflow.parentRunId")
    return {
        run.data.tags.get("agent.trial", "study"): (
            (run.info.status, run.info.start_time, run.info.end_time, run.data.params, run.data.metrics),
            {name: value for name, value in run.data.tags.items() if name not in ignored},
            sorted(file.path for file in client.list_artifacts(run.info.run_id)),
        )
        for run in client.search_runs([experiment_id])
    }


def test_a_server_gets_what_a_local_store_gets(server: str, store: Any, tmp_path: Path) -> None:
    study = rich("server", tmp_path)
    mirror = MlflowMirror(server)
    first = mirror.sync(study)
    assert first.created == 6
    assert mirror.sync(study).unchanged == 6
    assert check_tracking_uri(server) is None
    local = store.mirror().sync(study)
    assert _content(connect(server), first.experiment_id) == _content(store.client, local.experiment_id)
