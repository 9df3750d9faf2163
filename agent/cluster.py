"""The nodes of a Ray cluster before a study: in groups that are alike, and the group that the study is of.

What is measured on one kind of hardware says nothing of another, and a dead end's scope keeps them apart. So a study is
of one group of nodes; each of the others may have a study of its own.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.environment import compare
from agent.errors import NodeUnusableError
from agent.spec import StudySpec
from runners import EngineSettings
from runners.ray_nodes import FACTS_TIMEOUT_S, NodeQuestion, RayNode
from runners.ray_pool import Lost, PoolError, RayPool

GRACE_S = 30.0
"""How much longer than its own deadline a node may take to be reached at all."""
STEP_S = 1.0
Facts = Mapping[str, object]
AsStudy = Callable[[Facts], Facts]
"""Facts of a node → the same with what a study adds to them: device, ranks, engine."""


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node with its facts, or with why it is of no use."""

    node: RayNode
    facts: Facts
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike: no fact differs on which a reason or a measurement depends."""

    facts: Facts
    """Those of its first node, as a study would have them."""
    nodes: tuple[RayNode, ...]
    differs: tuple[str, ...] = ()
    """How the group differs from that of the study, one sentence each."""

    @property
    def num_gpus(self) -> int:
        """GPUs that its nodes offer to Ray."""
        return sum(int(node.offers.get("GPU", 0)) for node in self.nodes)

    @property
    def names(self) -> str:
        """Host names, as a reader sees them."""
        return ", ".join(node.host for node in self.nodes)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What a study of a cluster is of, and what it leaves out."""

    taken: NodeGroup
    others: tuple[NodeGroup, ...] = ()
    unusable: tuple[SeenNode, ...] = ()

    def document(self) -> list[dict[str, object]]:
        """Return every node for a program: whether a study takes it, why not, and its facts."""
        groups = [(self.taken, ""), *((group, "; ".join(group.differs)) for group in self.others)]
        rows = [(node, why, group.facts) for group, why in groups for node in group.nodes]
        rows += [(each.node, each.problem, each.facts) for each in self.unusable]
        return [
            {"host": node.host, "address": node.address, "why_not": why, "facts": facts} for node, why, facts in rows
        ]

    def lines(self) -> list[str]:
        """Return which nodes the study takes, which it leaves out and why, and how to search on those."""
        found = [f"nodes: {self.taken.names}"]
        for group in self.others:
            found.append(f"left out: {group.names}, which is other hardware or software ({'; '.join(group.differs)})")
            found.append(f"  a study of its own for it: put `like_node: {group.nodes[0].host}` into a file for --spec")
        return [*found, *(f"left out: {each.node.host}: {each.problem}" for each in self.unusable)]


def seen_nodes(address: str, question: NodeQuestion) -> list[SeenNode]:
    """Connect to a cluster, have each of its nodes read its own facts, and leave again.

    Raises:
        NodeUnusableError: nothing answers there.
    """
    pool = RayPool(address)
    try:
        pool.start()
        try:
            return ask_all(pool, pool.nodes(), question)
        finally:
            pool.stop()
    except PoolError as error:
        raise NodeUnusableError(str(error)) from error


def ask_all(pool: RayPool, nodes: Sequence[RayNode], question: NodeQuestion) -> list[SeenNode]:
    """Return what these nodes say of themselves, all asked at the same time."""
    asked = [pool.ask(node, question) for node in nodes]
    waiting, deadline = list(asked), time.monotonic() + FACTS_TIMEOUT_S + GRACE_S
    while waiting and time.monotonic() < deadline:
        for ended in pool.wait(waiting, STEP_S):
            waiting.remove(ended)
    found = []
    for node, task in zip(nodes, asked, strict=True):
        if task in waiting:
            pool.forget(task)
            found.append(SeenNode(node, {}, "it does not say what it is"))
            continue
        answer = pool.facts(task)
        found.append(SeenNode(node, {}, answer.why) if isinstance(answer, Lost) else SeenNode(node, answer))
    return found


def view_for(spec: StudySpec, seen: Sequence[SeenNode], as_study: AsStudy) -> ClusterView:
    """Return the group of nodes that a specification asks for: those like `like_node`, else those with most GPUs.

    Raises:
        UsageError, SpecificationError: `like_node` names none of them.
        NodeUnusableError: none can run a trial.
    """
    groups, unusable = _grouped(spec, seen, as_study)
    if spec.like_node is not None:
        taken = next((group for group in groups if any(_is_named(node, spec.like_node) for node in group.nodes)), None)
        if taken is None:
            why = next((each.problem for each in unusable if _is_named(each.node, spec.like_node)), None)
            known = ", ".join(each.node.host for each in seen)
            problem = f"{why}" if why else f"no node of the cluster is called that. There are: {known}"
            raise spec.error(problem, "like_node", spec.like_node)
    elif groups:
        own = socket.gethostname()
        taken = max(groups, key=lambda group: (group.num_gpus, own in group.names.split(", "), len(group.nodes)))
    else:
        listed = "".join(f"\n  {each.node.host}: {each.problem}" for each in unusable)
        raise NodeUnusableError(f"no node of the cluster can run a trial:{listed or ' it has none'}")
    others = (replace(each, differs=compare(taken.facts, each.facts).relevant) for each in groups if each is not taken)
    return ClusterView(taken, tuple(others), tuple(unusable))


def nearest(seen: Sequence[SeenNode], before: Facts) -> Facts:
    """Return the facts of the node that differs least from what a study was begun on.

    Raises:
        NodeUnusableError: no node says what it is.
    """
    known = [{**before, **each.facts} for each in seen if not each.problem]
    if not known:
        listed = "".join(f"\n  {each.node.host}: {each.problem}" for each in seen)
        raise NodeUnusableError(f"no node of the cluster says what it is:{listed or ' it has none'}")
    return min(known, key=lambda facts: len(compare(before, facts).relevant))


def lacks(node: RayNode, settings: EngineSettings) -> str:
    """Return what a node does not offer to Ray that one trial needs, in words; empty where it has room for one."""
    needs = RayPool.needs(settings)
    if node.holds(needs):
        return ""
    words = {name: name.removeprefix("num_").removesuffix("s").upper() for name in needs}
    wanted = " and ".join(f"{amount} {words[name]}s" for name, amount in needs.items())
    offered = ", ".join(f"{node.offers.get(name, 0):g} {name}s" for name in ("GPU", "CPU"))
    return f"a trial needs {wanted} and it offers Ray {offered}"


def _grouped(spec: StudySpec, seen: Sequence[SeenNode], as_study: AsStudy) -> tuple[list[NodeGroup], list[SeenNode]]:
    groups: list[NodeGroup] = []
    unusable: list[SeenNode] = []
    for each in seen:
        problem = each.problem
        if not problem and spec.device == "cuda" and not each.facts.get("gpu_count"):
            problem = "it has no GPU that its driver shows"
        facts = {} if problem else as_study(each.facts)
        problem = problem or lacks(each.node, _settings(spec, facts))
        if problem:
            unusable.append(replace(each, problem=problem))
            continue
        alike = next((index for index, group in enumerate(groups) if _are_alike(group.facts, facts)), None)
        if alike is None:
            groups.append(NodeGroup(facts, (each.node,)))
        else:
            groups[alike] = replace(groups[alike], nodes=(*groups[alike].nodes, each.node))
    return groups, unusable


def _settings(spec: StudySpec, facts: Facts) -> EngineSettings:
    return EngineSettings(engine=spec.engine, num_ranks=int(str(facts["num_ranks"])), device=str(facts["device"]))


def _are_alike(one: Facts, other: Facts) -> bool:
    return not compare(one, other).relevant and not compare(other, one).relevant


def _is_named(node: RayNode, name: str) -> bool:
    return name in (node.host, node.address, node.id)
