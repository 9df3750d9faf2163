"""Studies of modelled nodes: the node model that was asked for, checked, and the words that say so on every screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent.reasons import Reason
from agent.spec import StudySpec
from runners import EngineSettings
from search_spaces import (
    NodeModel,
    RecordedNode,
    SpecificationError,
    UnreadableFileError,
    YamlDocument,
    load_replayed,
    nearest,
    node_path,
    shipped_nodes,
)

REPLAY = "replay"
SAID_BY_THE_MODEL = ("space", "tp", "device")
"""Keys of a study that a node model answers itself."""


def asked_node(spec: StudySpec) -> tuple[NodeModel | RecordedNode, Path] | None:
    """Return the node model of a study with its path, or None for a study of a real node.

    Raises:
        UsageError, SpecificationError: it is missing, wrong, or given beside what it does not go with.
    """
    if spec.engine != REPLAY:
        if spec.node is not None:
            raise spec.error(f"only the replay engine answers from a node model: add --engine {REPLAY}", "node")
        return None
    if spec.node is None:
        shipped = ", ".join(shipped_nodes())
        raise spec.error(
            f"{REPLAY} answers from a node model: add --node NAME or --node FILE. Shipped: {shipped}", "engine"
        )
    for key in SAID_BY_THE_MODEL:
        if getattr(spec, key) is not None:
            raise spec.error("the node model says that itself: leave it away", key)
    path = _path(spec, spec.node)
    try:
        node = load_replayed(path)
    except UnreadableFileError as error:
        if error.path != path:
            raise
        shipped = ", ".join(shipped_nodes())
        problem = f"{error.problem}. Name a file that is there, or a shipped node: {shipped}"
        raise spec.error(problem, "node", spec.node) from error
    _check_reasons(node, path)
    return node, path


def modelled_name(settings: EngineSettings, facts: Mapping[str, object]) -> str:
    """Return the name of the modelled node that a study runs on, empty for a real one."""
    return "" if settings.node_model is None else str(facts.get("hostname", "")).partition(":")[2]


def _path(spec: StudySpec, written: str) -> Path:
    try:
        return node_path(written)
    except SpecificationError as error:
        raise spec.error(error.problem, "node", written) from error


def _check_reasons(node: NodeModel | RecordedNode, path: Path) -> None:
    """Reasons are the agent's vocabulary: the model itself cannot know them."""
    known = {reason.value for reason in Reason}
    if isinstance(node, RecordedNode):
        for trial in node.trials:
            if trial.failure is not None and trial.failure.reason not in known:
                problem = f"'{trial.failure.reason}' is no reason. {nearest(trial.failure.reason, known)}"
                raise SpecificationError(problem, path=path, key="reason")
        return
    for index, failure in enumerate(node.file.failures):
        if failure.reason not in known:
            problem = f"'{failure.reason}' is no reason. {nearest(failure.reason, known)}"
            raise YamlDocument(path).error(problem, "failures", index, "reason")
