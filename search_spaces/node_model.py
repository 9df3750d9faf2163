"""Node models: everything that is assumed of a node, in one file, from which the replay engine answers trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, JsonValue

from search_spaces.assignment import Assignment, Scalar
from search_spaces.node_answers import Answers, geometric_mean
from search_spaces.node_clock import Clock
from search_spaces.node_parts import Durations, Noise, NoOp, Performance, PlantedFailure, RungName
from search_spaces.scalar import StrictScalar
from search_spaces.space import SearchSpace
from search_spaces.switches import SpaceModel

LEVELS = (1, 8)
"""Concurrency levels where none are named: those of a study by default."""


class Narrowing(SpaceModel):
    """What the node makes of its space."""

    pins: Mapping[str, StrictScalar] = Field(default_factory=dict)
    excludes: Mapping[str, tuple[StrictScalar, ...]] = Field(default_factory=dict)
    defaults: Mapping[str, StrictScalar] = Field(default_factory=dict)
    """Parameter → the engine's default on this node, where the space says another one."""


class NodeFile(SpaceModel):
    """A node model as it is written."""

    node: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the node."""
    about: str = ""
    """What is modelled, and where its figures come from."""
    seed: int = 0
    """Seed of the noise and of flaky failures."""
    space: str | None = None
    """Catalogue name or path (seen from the file) of the space; None where the space stands in the file itself."""
    narrow: Narrowing = Narrowing()
    facts: Mapping[str, JsonValue]
    """The node's facts, by the names that `python -m runners.node_facts` gives them."""
    rungs: tuple[RungName, ...] = ("probe", "dummy", "full")
    performance: Performance
    noise: Noise = Noise()
    durations: Durations
    failures: tuple[PlantedFailure, ...] = ()
    no_ops: tuple[NoOp, ...] = ()


class NodeVariant(SpaceModel):
    """The same node with other facts: after an upgrade, say. Its conditions on facts then hold or no longer hold."""

    node: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    about: str = ""
    like: str
    """Name of a shipped node, or path (seen from the file)."""
    facts: Mapping[str, JsonValue]
    """Only the facts that differ; a mapping such as `packages` is merged."""


@dataclass(frozen=True)
class NodeModel:
    """A checked node model together with its space."""

    file: NodeFile
    space: SearchSpace

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.file.node

    @cached_property
    def facts(self) -> dict[str, object]:
        """The node's facts; its host name says that it is a model."""
        return {**self.file.facts, "hostname": f"modelled:{self.name}"}

    @cached_property
    def answers(self) -> Answers:
        """The model, prepared for fast answers."""
        file = self.file
        return Answers(self.space, self.facts, file.performance, file.failures, file.no_ops)

    @cached_property
    def clock(self) -> Clock:
        """The model's durations, prepared for fast answers."""
        return Clock(self.file.durations, self.answers)

    @property
    def default(self) -> Assignment:
        """The engine's default assignment on this node."""
        return self.space.normalise(self.space.default_on(self.facts), self.facts)


def with_defaults(space: SearchSpace, defaults: Mapping[str, Scalar]) -> SearchSpace:
    """Return the space with other defaults."""
    parameters = {
        name: each.model_copy(update={"default": defaults[name], "default_where": ()}) if name in defaults else each
        for name, each in space.parameters.items()
    }
    return space.model_copy(update={"parameters": parameters})


def without_probes(space: SearchSpace) -> SearchSpace:
    """Return the space for a node without a probe rung: no parameter is seen by a probe."""
    blind = {name: each.model_copy(update={"seen_by_probe": False}) for name, each in space.parameters.items()}
    return space.model_copy(update={"parameters": blind})


def true_value(node: NodeModel, assignment: Mapping[str, Scalar], levels: Sequence[int] = LEVELS) -> float | None:
    """Return the objective without noise: the geometric mean over the levels of output tokens per second.

    None where a launch fails for certain; a flaky failure takes nothing from the value.
    """
    effective, _ = node.answers.resolved(node.space.normalise(assignment, node.facts))
    if any(not failure.is_flaky for failure in node.answers.matching(effective, "full")):
        return None
    return geometric_mean([node.answers.figures(effective, level).tok_per_s for level in levels])


def cause(node: NodeModel, assignment: Mapping[str, Scalar], rung: str = "full") -> PlantedFailure | None:
    """Return the planted failure that a launch at a rung (`probe` or `full`) meets for certain, or None."""
    effective, _ = node.answers.resolved(node.space.normalise(assignment, node.facts))
    return next((each for each in node.answers.matching(effective, rung) if not each.is_flaky), None)
