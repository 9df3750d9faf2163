"""The nodes of a cluster while a study runs: which take trials, which do not and why, who joined and who left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from agent.cluster import lacks
from agent.environment import compare
from agent.errors import NodeUnusableError
from agent.store.manifest import Manifest
from runners.ray_nodes import FACTS_TIMEOUT_S, NodeQuestion, RayNode
from runners.ray_pool import Lost, PoolError, RayPool, Running

LOOK_EVERY_S = 2.0
ALONE_S = 120.0
"""How long a study waits for a node when it has none left: a machine may be restarting."""
STEP_S = 0.2


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the cluster as the study sees it."""

    node: RayNode
    why_not: str = ""
    """Why it gets no trials; empty where it does."""
    differs: Mapping[str, object] = field(default_factory=dict)
    """The facts in which it differs from the study's, those included that do not matter."""


class Fleet:
    """Nodes of the study's scope, as long as they live.

    Args:
        pool: The cluster.
        manifest: What the study is, with the facts that its nodes must have. A modelled study takes every node.
        question: What a node is asked before it gets a trial.
        per_node: Trials at the same time on one node.
        tell: Is told in words who was taken, left out or lost.
        note: Is given all members whenever they changed.
    """

    def __init__(
        self,
        pool: RayPool,
        manifest: Manifest,
        question: NodeQuestion,
        per_node: int,
        tell: Callable[[str], None],
        note: Callable[[list[Member]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._manifest, self._question = pool, manifest, question
        self._per_node, self._tell, self._note, self._clock = per_node, tell, note, clock
        self._is_modelled = manifest.settings.engine.node_model is not None
        self.begin_again()

    def begin_again(self) -> None:
        """Forget every node: the cluster is a new one."""
        self._members: dict[str, Member] = {}
        self._asked: dict[str, Running] = {}
        self._looked_at: float | None = None
        self._had_one_at = self._clock()
        self._is_settling = False

    @property
    def taken(self) -> list[RayNode]:
        """The nodes that take trials."""
        return [each.node for each in self._members.values() if not each.why_not]

    @property
    def capacity(self) -> int:
        """Trials at the same time on all nodes together."""
        return sum(map(self._room, self.taken))

    def settle(self) -> None:
        """Wait until every node has said what it is, and tell it in one go.

        Raises:
            NodeUnusableError: none of them may take trials, with why.
        """
        deadline = self._clock() + FACTS_TIMEOUT_S
        self._is_settling = True
        self.look(at_once=True)
        while self._asked and self._clock() < deadline:
            self._pool.wait(list(self._asked.values()), STEP_S)
            self.look(at_once=True)
        self._is_settling = False
        if not self.taken:
            raise NodeUnusableError(self._nobody())
        self._tell(f"trials run on: {', '.join(node.host for node in self.taken)}")
        for member in self._members.values():
            self._tell_of(member)

    def look(self, *, at_once: bool = False) -> None:
        """See who joined and who left, now and then or at once."""
        now = self._clock()
        if not at_once and self._looked_at is not None and now - self._looked_at < LOOK_EVERY_S:
            return
        try:
            nodes = {node.id: node for node in self._pool.nodes()}
        except PoolError:  # the head is away: whether for good, its own watch tells
            return
        self._looked_at = now
        changed = self._let_go(nodes) | self._take_in(nodes)
        if self.taken:
            self._had_one_at = now
        if changed:
            self._note(list(self._members.values()))

    def free_node(self, in_flight: Iterable[Running]) -> RayNode | None:
        """Return the node with most room for one more trial, or None where all are taken up."""
        busy = Counter(running.node.id for running in in_flight if running.node is not None)
        open_ = [node for node in self.taken if busy[node.id] < self._room(node)]
        return min(open_, key=lambda node: busy[node.id] / self._room(node), default=None)

    def has_lost(self, node: RayNode | None) -> bool:
        """Return whether a node has left the cluster."""
        return node is not None and self._looked_at is not None and node.id not in self._members | self._asked

    def quarantine(self, node: RayNode, why: str) -> None:
        """Give a node no more trials until somebody has looked at it."""
        self._settle_member(node, Member(node, why))
        self._note(list(self._members.values()))

    def problem(self) -> str | None:
        """Return why the study cannot go on: for a while now there has been no node for it."""
        return self._nobody() if self._clock() - self._had_one_at > ALONE_S and not self.taken else None

    def _nobody(self) -> str:
        listed = "".join(f"\n  {each.node.host}: {each.why_not}" for each in self._members.values())
        return f"no node of the cluster may take trials of this study{':' if listed else ''}{listed}"

    def _room(self, node: RayNode) -> int:
        """A modelled launch takes no hardware: what exceeds a node's CPUs waits there."""
        if self._is_modelled:
            return self._per_node
        return min(self._per_node, node.holds(RayPool.needs(self._manifest.settings.engine)))

    def _let_go(self, nodes: Mapping[str, RayNode]) -> bool:
        gone = [id for id in (*self._members, *self._asked) if id not in nodes]
        for id in gone:
            self._asked.pop(id, None)
            member = self._members.pop(id, None)
            if member is not None and not member.why_not:
                self._tell(f"node {member.node.host} left the cluster: what it ran is queued again")
        return bool(gone)

    def _take_in(self, nodes: Mapping[str, RayNode]) -> bool:
        before = len(self._members)
        for id, node in nodes.items():
            if id not in self._members and id not in self._asked:
                self._meet(node)
        for running in self._pool.wait(list(self._asked.values()), 0.0) if self._asked else []:
            if running.node is not None:
                del self._asked[running.node.id]
                self._settle_member(running.node, self._judged(running.node, self._pool.facts(running)))
        return len(self._members) != before

    def _meet(self, node: RayNode) -> None:
        why = "" if self._is_modelled else lacks(node, self._manifest.settings.engine)
        if self._is_modelled or why:
            self._settle_member(node, Member(node, why))
        else:
            self._asked[node.id] = self._pool.ask(node, self._question)

    def _judged(self, node: RayNode, answer: Mapping[str, object] | Lost) -> Member:
        if isinstance(answer, Lost):
            return Member(node, f"it does not say what it is: {answer.why}")
        before = self._manifest.facts
        now = {**before, **answer}
        differs = {name: value for name, value in answer.items() if name in before and value != before[name]}
        return Member(node, "; ".join(compare(before, now).relevant), differs)

    def _settle_member(self, node: RayNode, member: Member) -> None:
        self._members[node.id] = member
        if self._is_settling:
            return
        if not member.why_not:
            self._tell(f"node {node.host} joined: it takes trials")
        self._tell_of(member)

    def _tell_of(self, member: Member) -> None:
        if member.why_not:
            self._tell(f"node {member.node.host} takes no trials of this study: {member.why_not}")
