"""Studies on a Ray cluster of several nodes: a node leaves, one joins, the head goes, another kind of node is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.home import Home
from agent.reading import read_study
from agent.reasons import Reason
from agent.store.study_store import StudyStore
from runners.cookies import find_processes
from tests.support.command_line import SYNTHETIC, Search, query, running_cookies, start_agent
from tests.support.failing_engines import HOLD
from tests.support.ray_cluster import ClusterNode, RayCluster, ray_cluster
from tests.support.study_checks import problems_of
from tests.support.waiting import wait_until

HOLDING = "tests.support.failing_engines:HoldingEngine"
START_S, END_S = 240.0, 600.0

pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """A cluster without nodes."""
    with ray_cluster() as made:
        yield made


def search(cluster: RayCluster, home: Path, *words: str, **variables: str) -> Search:
    """Start a search on the cluster."""
    started = start_agent(*words, "--ray-address", cluster.address, home=home, **cluster.variables, **variables)
    return replace(started, patience_s=END_S)


def store_of(home: Path) -> StudyStore:
    """Return the study as it is stored now."""
    return read_study(Home.find(str(home)), None, None).store


def nodes_at_work(cluster: RayCluster, home: Path) -> dict[str, ClusterNode]:
    """Return cookie of a trial in flight → the node on which its engine runs."""
    found = {}
    for cookie in running_cookies(home):
        for process in find_processes(cookie):
            if (node := cluster.node_of(process.pid)) is not None:
                found[cookie] = node
    return found


def failures(home: Path) -> list[Reason]:
    """Return why trials of the study and its companion were interrupted."""
    store = store_of(home)
    outcomes = [trial.outcome for trial in (*store.trials(), *store.probes())]
    return [each.failure.reason for each in outcomes if each is not None and each.failure is not None]


@pytest.mark.parametrize(
    "engine",
    [("--engine", HOLDING, *SYNTHETIC), ("--option", "preset=tiny", "--device", "cpu")],
    ids=["held", "torch"],
)
def test_a_study_survives_the_loss_of_a_node_and_of_the_head_and_uses_what_joins(
    cluster: RayCluster, tmp_path: Path, engine: tuple[str, ...]
) -> None:
    """A node that leaves costs its trials in flight; the head costs the session; no trial is lost or doubled.

    Launches of one engine last while a file is there; those of the torch engine take their time. With the raylet that
    the agent is tied to, Ray ends the agent too: what was in flight is closed by the next one.
    """
    home, hold, budget = tmp_path / "home", tmp_path / "hold", 8
    for num_cpus in (0, 2, 2):
        cluster.add(num_cpus=num_cpus)
    head = cluster.nodes[0]
    hold.touch()
    running = search(cluster, home, "search", "--budget", str(budget), *engine, **{HOLD: str(hold)})
    struck = wait_until(lambda: next(iter(nodes_at_work(cluster, home).values()), None), START_S)
    cluster.kill(struck)
    wait_until(lambda: Reason.NODE_LOST in failures(home), START_S)
    joined = cluster.add(num_cpus=2)
    hold.unlink()
    wait_until(lambda: joined in nodes_at_work(cluster, home).values(), START_S)
    hold.touch()
    wait_until(lambda: nodes_at_work(cluster, home), START_S)
    cluster.kill(head)
    assert running.ended.returncode != 0
    hold.unlink()
    with ray_cluster() as another:
        for num_cpus in (0, 2):
            another.add(num_cpus=num_cpus)
        resumed = search(another, home, "resume")
        assert resumed.ended.returncode == 0, resumed.ended.stdout + resumed.ended.stderr
    assert problems_of(home, budget, is_serial=False) == []


def test_trials_go_to_nodes_of_the_study_s_scope_and_the_others_are_named(cluster: RayCluster, tmp_path: Path) -> None:
    """A node that sees fewer processors is another kind of node: what is measured there says nothing of the others."""
    home = tmp_path / "home"
    cluster.add(num_cpus=2)
    cluster.add(num_cpus=2)
    cluster.add(num_cpus=2, processors=1)
    hold = tmp_path / "hold"
    words = ("search", "--budget", "10", "--engine", HOLDING, *SYNTHETIC)
    running = search(cluster, home, *words, **{HOLD: str(hold)})
    wait_until(lambda: home.exists() and _num_closed(home) >= 2, START_S)  # default and baseline come one by one
    hold.touch()
    wait_until(lambda: len(nodes_at_work(cluster, home)) == 2, START_S)
    assert set(nodes_at_work(cluster, home).values()) == set(cluster.nodes[:2])
    hold.unlink()
    assert running.ended.returncode == 0, running.ended.stdout + running.ended.stderr
    assert "left out" in running.ended.stdout
    assert "num_cpus: 2 → 1" in running.ended.stdout
    status = json.loads(start_agent("status", "--json", home=home).ended.stdout)
    assert [bool(node["why_not"]) for node in status["nodes"]].count(True) == 1
    assert problems_of(home, 10, is_serial=False) == []


def _num_closed(home: Path) -> int:
    return len(
        query(
            home,
            "SELECT trial_id FROM trials JOIN studies USING (study_id) WHERE state = 'COMPLETE' "
            "AND study_name NOT LIKE '%/probes'",
        )
    )
