"""The same through a real tracking server on loopback: its client, its artifact proxy, its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.mirror import MlflowMirror, check_tracking_uri
from agent.mirror.client import connect
from tests.agent.mirror.samples import rich
from tests.support.services import MlflowServer


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


def test_a_server_gets_what_a_local_store_gets(mlflow_server: MlflowServer, store: Any, tmp_path: Path) -> None:
    server = mlflow_server.url
    study = rich("server", tmp_path)
    mirror = MlflowMirror(server)
    first = mirror.sync(study)
    assert first.created == 6
    assert mirror.sync(study).unchanged == 6
    assert check_tracking_uri(server) is None
    local = store.mirror().sync(study)
    assert _content(connect(server), first.experiment_id) == _content(store.client, local.experiment_id)
