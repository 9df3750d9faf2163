"""What mirroring a trial costs beside the plain loop anybody would write, and that it does not grow with the study.

Figures: `pytest tests/agent/mirror/test_cost.py -m benchmark -s`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.mirror import run_of
from agent.mirror.files import stage
from agent.store.trial import Trial
from tests.agent.mirror.samples import snapshot, trial, with_files

SAMPLE = 50


def _timed(write: Callable[[int], object], numbers: range) -> tuple[float, float]:
    """Wall and CPU milliseconds for each number."""
    wall, cpu = time.perf_counter(), time.process_time()
    for number in numbers:
        write(number)
    scale = 1000.0 / len(numbers)
    return (time.perf_counter() - wall) * scale, (time.process_time() - cpu) * scale


def _plain_batch(client: Any, experiment_id: str, item: Trial, folder: Path) -> None:
    """The same content with MLflow's client, in its batched form and with one upload a file."""
    from mlflow.entities import Metric, Param, RunTag

    run, info = run_of(item), client.create_run(experiment_id).info
    metrics = [Metric(m.name, m.value, run.end_ms, m.step) for m in run.metrics]
    params = [Param(name, value) for name, value in run.params.items()]
    client.log_batch(info.run_id, metrics, params, [RunTag(name, value) for name, value in run.tags.items()])
    stage(run, folder)
    for path in folder.iterdir():
        client.log_artifact(info.run_id, str(path))
    client.set_terminated(info.run_id, run.status)


def _plain_fluent(experiment_id: str, item: Trial, folder: Path) -> None:
    """The same content with MLflow's fluent calls, as most scripts have it."""
    import mlflow

    run = run_of(item)
    with mlflow.start_run(experiment_id=experiment_id, run_name=run.name):
        mlflow.set_tags(dict(run.tags))
        mlflow.log_params(dict(run.params))
        for point in run.metrics:
            mlflow.log_metric(point.name, point.value, step=point.step)
        stage(run, folder)
        mlflow.log_artifacts(str(folder))


@pytest.mark.benchmark
@pytest.mark.parametrize("num_runs", [200, 2000])
def test_cost_of_a_trial(store: Any, tmp_path: Path, num_runs: int, capsys: Any) -> None:
    import mlflow

    study = f"cost-{num_runs}"
    items = [with_files(trial(n, study=study), tmp_path / "files") for n in range(num_runs + SAMPLE)]
    mirror = store.mirror()
    mirror.open_study(snapshot(study, (), status="running"))
    first = _timed(lambda n: mirror.mirror_trial(items[n]), range(SAMPLE))
    for item in items[SAMPLE:num_runs]:
        mirror.mirror_trial(item)
    last = _timed(lambda n: mirror.mirror_trial(items[n]), range(num_runs, num_runs + SAMPLE))
    whole = snapshot(study, tuple(items))
    mirror.sync(whole)
    again = _timed(lambda _: store.mirror().sync(whole), range(1))
    mlflow.set_tracking_uri(mirror.tracking_uri)
    plain = store.client.create_experiment(f"plain-{num_runs}", artifact_location=tmp_path.as_uri())

    def folder(n: int) -> Path:
        return Path(tempfile.mkdtemp(dir=tmp_path, prefix=f"{n}-"))

    batch = _timed(lambda n: _plain_batch(store.client, plain, items[n], folder(n)), range(SAMPLE))
    fluent = _timed(lambda n: _plain_fluent(plain, items[n], folder(n)), range(SAMPLE))
    with capsys.disabled():
        print(
            f"\n{num_runs} runs; ms a trial (wall, CPU): mirror first {SAMPLE}: {_shown(first)}, last: {_shown(last)}"
        )
        print(
            f"plain client, batched: {_shown(batch)}; fluent calls: {_shown(fluent)}; sync, unchanged: {_shown(again)}"
        )
    assert last[1] < min(batch[1], fluent[1]) * 1.2
    assert last[1] < first[1] * 1.5


def _shown(cost: tuple[float, float]) -> str:
    return f"{cost[0]:.1f}, {cost[1]:.1f}"
