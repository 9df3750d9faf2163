"""A team: several agents on several studies at once, in one PostgreSQL, one MLflow server and one Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mlflow
import pytest

from agent.home import Home
from agent.reading import read_study
from tests.support.command_line import SYNTHETIC, Search, start_agent
from tests.support.failing_engines import HOLD
from tests.support.ray_cluster import RayCluster, ray_cluster
from tests.support.services import MlflowServer
from tests.support.study_checks import problems_of
from tests.support.waiting import wait_until

HOLDING = "tests.support.failing_engines:HoldingEngine"
START_S, END_S = 240.0, 600.0

pytestmark = pytest.mark.timeout(1200)
BUDGET = 8


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """A cluster of two nodes."""
    with ray_cluster() as made:
        made.add(num_cpus=4)
        made.add(num_cpus=4)
        yield made


def test_agents_of_a_team_share_a_database_a_tracker_and_a_cluster_and_nothing_else(
    cluster: RayCluster, postgres_url: str, mlflow_server: MlflowServer, tmp_path: Path
) -> None:
    """Each study is whole, nobody's trials are in another's, and a study that is being run is refused to others."""
    hold = tmp_path / "hold"
    hold.touch()
    together = ("--trials-per-node", "2", "--accept-interference")
    shared = ("--storage", postgres_url, "--ray-address", cluster.address, *together)

    def search(name: str, *engine: str, seed: int) -> Search:
        words = ("--name", name, "--budget", str(BUDGET), "--seed", str(seed), *engine, *shared)
        tracked = ("--tracking-uri", mlflow_server.url)
        variables = {**cluster.variables, HOLD: str(hold)}
        started = start_agent("search", *words, *tracked, home=tmp_path / name, **variables)
        return replace(started, patience_s=END_S)

    held = search("team-held", "--engine", HOLDING, *SYNTHETIC, seed=0)
    modelled = [
        search(f"team-{seed}", "--engine", "replay", "--node", "pcie2-24gib-vllm", seed=seed) for seed in (1, 2)
    ]
    wait_until(lambda: _is_running("team-held", tmp_path / "team-held", postgres_url), START_S)
    refused = start_agent("resume", "team-held", *shared, home=tmp_path / "other", **cluster.variables).ended
    assert refused.returncode == 2
    assert "is being run by" in refused.stdout + refused.stderr
    for each in modelled:
        assert each.ended.returncode == 0, each.ended.stdout + each.ended.stderr
    hold.unlink()
    assert held.ended.returncode == 0, held.ended.stdout + held.ended.stderr
    client = mlflow.MlflowClient(tracking_uri=mlflow_server.url)
    for name in ("team-held", "team-1", "team-2"):
        assert problems_of(tmp_path / name, BUDGET, is_serial=False) == []
        experiment = client.get_experiment_by_name(name)
        launches = client.search_runs([experiment.experiment_id], "tags.rung = 'full'", max_results=100)
        assert len(launches) == BUDGET


def _is_running(name: str, home: Path, url: str) -> bool:
    if not (home / "last.json").exists():
        return False
    store = read_study(Home.find(str(home)), name, url).store
    return any(not trial.is_closed for trial in store.trials())
