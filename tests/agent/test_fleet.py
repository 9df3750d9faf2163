"""The nodes of a cluster while a study runs: joins, losses, other hardware, and who is given the next trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import pytest

from agent.errors import NodeUnusableError
from agent.fleet import ALONE_S, LOOK_EVERY_S, Fleet, Member
from agent.settings import StudySettings
from agent.store.manifest import Manifest
from runners import EngineSettings
from runners.ray_nodes import NodeQuestion, RayNode
from runners.ray_pool import Lost, RayPool, Running
from search_spaces import load_space

FACTS: Mapping[str, object] = {"gpu_names": ["H100", "H100"], "driver": "570.1", "device": "cuda", "num_ranks": 2}
OTHER = {**FACTS, "driver": "550.2"}


class Answers(dict[str, "Mapping[str, object] | Lost"]):
    """Host → what it answers; may be called as the pool's own method is."""

    def __call__(self, task: Running) -> Mapping[str, object] | Lost:
        """Return the answer to a question."""
        return self[str(task.reference)]


@dataclass
class Nodes:
    """A cluster that says what it is told to say."""

    facts: Answers
    alive: set[str]
    are_slow: bool = False

    def nodes(self) -> list[RayNode]:
        """Return the living nodes."""
        return [node(host) for host in sorted(self.alive)]

    def ask(self, asked: RayNode, question: NodeQuestion) -> Running:
        """Note whom the answer will be of."""
        return Running(asked.host, (), asked)

    def wait(self, running: Sequence[Running], timeout_s: float) -> list[Running]:
        """Return everything, unless nobody has answered yet."""
        return [] if self.are_slow else list(running)


def node(host: str, gpus: int = 4) -> RayNode:
    """Return a node with room for two trials."""
    return RayNode(f"id-{host}", host, "10.0.0.1", {"GPU": gpus, "CPU": 64})


class Cluster:
    """A fleet over nodes that a test turns on and off, with a clock that it moves."""

    def __init__(self, *hosts: str, per_node: int = 1, node_model: str | None = None) -> None:
        self.now = 0.0
        self.said: list[str] = []
        self.noted: list[list[Member]] = []
        self.answers = Answers(dict.fromkeys(hosts, FACTS))
        self.pool = Nodes(self.answers, set(hosts))
        settings = StudySettings(
            name="study",
            engine=EngineSettings(engine="sglang", num_ranks=2, device="cuda", node_model=node_model),
            space="sglang",
        )
        manifest = Manifest(settings=settings, space=load_space("sglang"), facts=FACTS, created_at=datetime.now(UTC))
        pool = cast(RayPool, self.pool)
        self.fleet = Fleet(
            pool, manifest, NodeQuestion(), per_node, self.said.append, self.noted.append, lambda: self.now
        )

    def later(self, seconds: float = LOOK_EVERY_S) -> None:
        """Let time go by and look."""
        self.now += seconds
        self.fleet.look()

    @property
    def taken(self) -> list[str]:
        """Hosts that take trials."""
        return [each.host for each in self.fleet.taken]


def on(host: str) -> Running:
    """Return a trial that runs on a node."""
    return Running(None, (), node(host))


def test_nodes_like_the_study_s_take_trials_and_others_are_left_out_by_name() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.answers["c"] = OTHER
    cluster.fleet.settle()
    assert cluster.taken == ["a", "b"]
    assert cluster.said == ["trials run on: a, b", "node c takes no trials of this study: driver: 570.1 → 550.2"]
    assert [(each.node.host, each.why_not) for each in cluster.noted[-1]][-1] == ("c", "driver: 570.1 → 550.2")


def test_without_a_node_of_the_scope_the_study_does_not_begin() -> None:
    cluster = Cluster("a")
    cluster.answers["a"] = OTHER
    with pytest.raises(NodeUnusableError, match=r"(?s)no node of the cluster may take trials.*driver: 570.1 → 550.2"):
        cluster.fleet.settle()


def test_the_next_trial_goes_where_most_room_is_and_none_goes_where_there_is_none() -> None:
    cluster = Cluster("a", "b", per_node=2)
    cluster.fleet.settle()
    assert cluster.fleet.capacity == 4
    assert cluster.fleet.free_node([on("a")]) == node("b")
    assert cluster.fleet.free_node([on("a"), on("b"), on("b")]) == node("a")
    assert cluster.fleet.free_node([on("a"), on("b"), on("b"), on("a")]) is None


def test_a_node_takes_no_more_trials_than_its_resources_hold() -> None:
    cluster = Cluster("a", per_node=8)
    cluster.fleet.settle()
    assert cluster.fleet.capacity == 2


def test_a_node_that_left_is_lost_and_one_that_joined_is_used_once_it_said_what_it_is() -> None:
    cluster = Cluster("a", "b")
    cluster.fleet.settle()
    cluster.pool.alive -= {"b"}
    assert not cluster.fleet.has_lost(node("b"))
    cluster.later()
    assert cluster.fleet.has_lost(node("b"))
    assert not cluster.fleet.has_lost(node("a"))
    cluster.answers["c"] = FACTS
    cluster.pool.alive |= {"c"}
    cluster.pool.are_slow = True
    cluster.later()
    assert cluster.taken == ["a"]
    assert not cluster.fleet.has_lost(node("c"))
    cluster.pool.are_slow = False
    cluster.later()
    assert cluster.taken == ["a", "c"]
    assert cluster.said[-2:] == [
        "node b left the cluster: what it ran is queued again",
        "node c joined: it takes trials",
    ]


def test_a_node_that_cannot_be_asked_is_left_out_with_the_reason() -> None:
    cluster = Cluster("a", "b")
    cluster.answers["b"] = Lost("the runner failed: RuntimeError: no driver")
    cluster.fleet.settle()
    assert cluster.taken == ["a"]
    assert "no driver" in cluster.said[-1]


def test_a_quarantined_node_stays_out_until_it_joins_anew() -> None:
    cluster = Cluster("a", "b")
    cluster.fleet.settle()
    cluster.fleet.quarantine(node("b"), "process 7 was left")
    cluster.later()
    assert cluster.taken == ["a"]
    assert cluster.noted[-1][-1].why_not == "process 7 was left"


def test_a_study_waits_a_while_for_a_node_before_it_gives_up() -> None:
    """A machine may be restarting."""
    cluster = Cluster("a")
    cluster.fleet.settle()
    cluster.pool.alive.clear()
    cluster.later()
    assert cluster.fleet.problem() is None
    cluster.later(ALONE_S)
    assert cluster.fleet.problem() == "no node of the cluster may take trials of this study"


def test_a_modelled_study_takes_every_node_unasked() -> None:
    cluster = Cluster("a", "b", per_node=40, node_model="/node.yaml")
    cluster.answers.clear()
    cluster.fleet.settle()
    assert cluster.taken == ["a", "b"]
    assert cluster.fleet.capacity == 80
