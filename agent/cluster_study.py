"""A study on the nodes of a cluster: the facts it is begun or resumed with, and what of its nodes is stored with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from agent.cluster import AsStudy, ClusterView, nearest, seen_nodes, view_for
from agent.environment import FILES, Collect
from agent.errors import NodeUnusableError
from agent.fleet import Fleet, Member
from agent.server import SERVERS, Server
from agent.spec import StudySpec
from agent.store.manifest import Manifest
from agent.store.study_store import NODES, StudyStore
from runners import EngineSettings
from runners.engine_dialects import ask_python
from runners.ray_nodes import NodeQuestion
from runners.ray_pool import PoolError, RayPool

if TYPE_CHECKING:
    from agent.session import SessionOptions


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node of the cluster as it is stored with a study."""

    id: str
    host: str
    address: str
    why_not: str
    """Why it gets no trials; empty where it does."""
    differs: Mapping[str, object]
    """The facts in which it differs from the study's."""


def asked_cluster(spec: StudySpec, server: Server | None, as_study: AsStudy) -> ClusterView | None:
    """Return the nodes that a study of somebody's cluster is of; None for one of this machine, or of a modelled node.

    Raises:
        UsageError, SpecificationError: `like_node` names none of the nodes, or stands there without a cluster.
        NodeUnusableError: the cluster does not answer, or none of its nodes can run a trial.
    """
    if spec.ray_address is None:
        if spec.like_node is not None:
            raise spec.error("nodes are chosen in a cluster only: add --ray-address", "like_node", spec.like_node)
        return None
    if spec.node is not None:
        return None
    return view_of(spec.ray_address, spec, server, as_study)


def view_of(address: str, spec: StudySpec, server: Server | None, as_study: AsStudy) -> ClusterView:
    """Return the nodes of a cluster as a study of this specification sees them; it raises what `asked_cluster` does."""
    named = {"model": spec.model, "draft_model": spec.draft}
    if server is not None:
        named = {"model": server.model, "draft_model": server.draft_model}
    question = _question(named, server.paths if server else ())
    return view_for(spec, seen_nodes(address, question), as_study)


def cluster_facts(address: str, manifest: Manifest) -> Collect:
    """Return how the facts of now are read for a study that goes on in a cluster: of the node that differs least."""

    def collect(paths: tuple[str, ...]) -> Mapping[str, object]:
        question = _question(manifest.settings.engine.model_dump(), paths)
        return nearest(seen_nodes(address, question), manifest.facts)

    return collect


def fleet_of(store: StudyStore, pool: RayPool, options: SessionOptions, tell: Callable[[str], None]) -> Fleet | None:
    """Return the nodes of a cluster that a study runs on now, and store them with it; None on a Ray of its own.

    Raises:
        NodeUnusableError: none of them may take trials.
    """

    if options.ray_address is None:
        return None

    def note(members: Sequence[Member]) -> None:
        nodes = [
            StoredNode(each.node.id, each.node.host, each.node.address, each.why_not, each.differs) for each in members
        ]
        store.set_attribute(NODES, [asdict(node) for node in nodes])

    settings = store.manifest.settings.engine
    question = _question(settings.model_dump(), _packages_of(settings))
    fleet = Fleet(pool, store.manifest, question, options.slots, tell, note)
    try:
        fleet.settle()
    except PoolError as error:
        raise NodeUnusableError(str(error)) from error
    return fleet


def stored_nodes(store: StudyStore) -> tuple[StoredNode, ...]:
    """Return the nodes of the cluster that a study ran on last; none where it runs on one machine."""
    found = store.get_attribute(NODES)
    return tuple(StoredNode(**each) for each in found) if isinstance(found, list) else ()


def node_lines(store: StudyStore) -> Iterator[str]:
    """Yield which nodes of a cluster a study ran on last, and which it left out; nothing for one of one machine."""
    nodes = stored_nodes(store)
    if nodes:
        yield f"nodes: {', '.join(node.host for node in nodes if not node.why_not) or 'none'}"
    yield from (f"left out: {node.host}: {node.why_not}" for node in nodes if node.why_not)


def _packages_of(settings: EngineSettings) -> tuple[str, ...]:
    """Return the folders of a server's packages, which lie under the same paths on every node."""
    if settings.engine not in SERVERS or settings.python is None:
        return ()
    return ask_python(settings.python, {**os.environ, **settings.variables}).paths


def _question(settings: Mapping[str, object], paths: tuple[str, ...]) -> NodeQuestion:
    places = {fact: settings.get(setting) for fact, setting in FILES.items() if fact != "node_file"}
    return NodeQuestion(paths=paths, files={fact: str(place) for fact, place in places.items() if place is not None})
