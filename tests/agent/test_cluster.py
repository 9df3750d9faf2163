"""Which nodes of a cluster a study is of: alike ones together, the others named, and how to search on them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent.cluster import ClusterView, NodeGroup, SeenNode, nearest, view_for
from agent.errors import NodeUnusableError, UsageError
from agent.spec import StudySpec, load_spec
from runners.ray_nodes import RayNode, living

H100 = {"gpu_names": ["H100"] * 8, "gpu_count": 8, "driver": "570.1", "torch": "2.13", "kernel": "6.1"}
L40 = {"gpu_names": ["L40"] * 4, "gpu_count": 4, "driver": "570.1", "torch": "2.13", "kernel": "6.1"}


def node(host: str, gpus: float = 8, cpus: float = 64) -> RayNode:
    """Return a node that offers so much."""
    return RayNode(f"id-{host}", host, f"10.0.0.{len(host)}", {"GPU": gpus, "CPU": cpus})


def as_study(facts: Mapping[str, object]) -> Mapping[str, object]:
    """What a study of all GPUs adds to the facts of a node."""
    gpus = int(str(facts.get("gpu_count") or 0))
    return {**facts, "device": "cuda" if gpus else "cpu", "num_ranks": gpus or 2}


def view(*seen: SeenNode, **options: object) -> ClusterView:
    """Return what a study takes of these nodes."""
    spec: StudySpec = load_spec(None, {"ray_address": "head:6379", **options})
    return view_for(spec, seen, as_study)


def hosts(group: NodeGroup) -> list[str]:
    """Return the host names of a group."""
    return [each.host for each in group.nodes]


def test_nodes_that_differ_in_nothing_that_matters_are_one_group() -> None:
    """Another kernel measures the same; another driver does not."""
    other_kernel, other_driver = {**H100, "kernel": "6.8"}, {**H100, "driver": "550.2"}
    found = view(SeenNode(node("a"), H100), SeenNode(node("b"), other_kernel), SeenNode(node("c"), other_driver))
    assert hosts(found.taken) == ["a", "b"]
    assert [hosts(group) for group in found.others] == [["c"]]
    assert found.others[0].differs == ("driver: 570.1 → 550.2",)


def test_of_several_kinds_the_one_with_the_most_gpus_is_taken_and_the_others_are_named_with_the_way_to_them() -> None:
    found = view(SeenNode(node("small", 4), L40), SeenNode(node("big"), H100))
    assert hosts(found.taken) == ["big"]
    text = "\n".join(found.lines())
    assert "left out: small" in text
    assert "L40" in text
    assert "like_node: small" in text


def test_like_node_takes_the_other_kind() -> None:
    found = view(SeenNode(node("small", 4), L40), SeenNode(node("big"), H100), like_node="small")
    assert hosts(found.taken) == ["small"]
    assert found.taken.facts["num_ranks"] == 4
    assert [hosts(group) for group in found.others] == [["big"]]


def test_a_name_that_no_node_has_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"--like-node smal: no node of the cluster is called that\. There are: small"):
        view(SeenNode(node("small", 4), L40), like_node="smal")


def test_a_node_that_offers_too_little_is_left_out_with_what_is_missing() -> None:
    """A head that offers Ray nothing is the usual case."""
    found = view(SeenNode(node("head", 0, 0), {"gpu_count": 0}), SeenNode(node("big"), H100))
    assert hosts(found.taken) == ["big"]
    assert [(each.node.host, each.problem) for each in found.unusable] == [
        ("head", "a trial needs 2 CPUs and it offers Ray 0 GPUs, 0 CPUs")
    ]


def test_a_cluster_without_a_node_for_a_trial_says_what_each_lacks() -> None:
    with pytest.raises(NodeUnusableError, match=r"(?s)no node of the cluster.*head: it has no GPU"):
        view(SeenNode(node("head"), {"gpu_count": 0}), device="cuda")


def test_a_study_that_goes_on_is_compared_with_the_node_that_is_most_like_its_own() -> None:
    seen = [SeenNode(node("small", 4), L40), SeenNode(node("big"), {**H100, "driver": "550.2"})]
    assert nearest(seen, as_study(H100))["gpu_names"] == ["H100"] * 8


def test_only_nodes_that_are_alive_count_and_their_order_is_that_of_their_names() -> None:
    row = {"NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 4.0}}
    rows = [
        {**row, "NodeID": "2", "NodeManagerHostname": "b", "Alive": True},
        {**row, "NodeID": "1", "NodeManagerHostname": "a", "Alive": True},
        {**row, "NodeID": "0", "NodeManagerHostname": "0", "Alive": False},
    ]
    assert [each.id for each in living(rows)] == ["1", "2"]


@pytest.mark.parametrize(("needs", "number"), [({"num_gpus": 4, "num_cpus": 1}, 2), ({"num_cpus": 48}, 1)])
def test_a_node_holds_as_many_trials_as_its_scarcest_resource_allows(needs: dict[str, int], number: int) -> None:
    assert node("a").holds(needs) == number
