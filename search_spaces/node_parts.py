"""What a node model's file is made of: performance, noise, durations, planted failures, silent fallbacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from search_spaces.assignment import Scalar, is_one_of
from search_spaces.scalar import StrictScalar
from search_spaces.switches import SpaceModel

PhaseName = Literal[
    "resolve",
    "spawn",
    "init_distributed",
    "load_weights",
    "alloc_kv",
    "compile",
    "capture_graphs",
    "warmup",
    "ready",
    "serve",
    "stop",
]
"""The phases of a launch in their order, by the names that runners give them."""
PHASES: tuple[str, ...] = get_args(PhaseName)
RungName = Literal["probe", "dummy", "full"]
Component = Literal["step", "compute", "communication", "draft", "acceptance"]
Seconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
NEEDED_FACTS = ("device", "num_ranks", "engine_version")
"""Without these no study can be planned on a node."""
DEVICES = ("cuda", "cpu")
MOST_RANKS = 4096
_VERSION = re.compile(r"\d+(?:\.\d+)*")


def fact_problems(facts: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the facts that every study needs, by name (empty where one is missing)."""
    for name in NEEDED_FACTS:
        value = facts.get(name)
        if value is None:
            yield "", f"'{name}' is missing"
        elif name == "num_ranks":
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_RANKS:
                yield name, f"must be a whole number from 1 to {MOST_RANKS}"
        elif not isinstance(value, str):
            yield name, "must be a text"
        elif name == "device" and value not in DEVICES:
            yield name, f"must be one of {', '.join(DEVICES)}"


class Wanted(SpaceModel):
    """What a clause asks of one parameter or fact: a list of values, or bounds (both ends included)."""

    values: tuple[StrictScalar, ...] | None = None
    at_least: StrictScalar | None = None
    at_most: StrictScalar | None = None

    @model_validator(mode="before")
    @classmethod
    def _list_is_values(cls, written: object) -> object:
        found = {"values": written} if isinstance(written, list | tuple) else written
        if isinstance(found, Mapping) and isinstance(values := found.get("values"), list):
            return {**found, "values": tuple(values)}  # strict: a list of Python is no tuple
        return found

    @model_validator(mode="after")
    def _asks_for_one_kind(self) -> Wanted:
        is_bound = self.at_least is not None or self.at_most is not None
        if (self.values is None) is not is_bound:
            raise ValueError("write a list of values, or {at_least: x} and/or {at_most: x}")
        return self

    @property
    def bounds(self) -> tuple[Scalar, ...]:
        """The bounds that are given."""
        return tuple(bound for bound in (self.at_least, self.at_most) if bound is not None)

    def holds_for(self, value: object) -> bool:
        """Return whether a parameter's value or a fact is what is asked for.

        Numbers are compared as numbers. With a text bound, both are compared as the first version number in them
        ("12.8" < "13.1", "sglang 0.5.6" < "0.5.14"); without one in the fact nothing holds.
        """
        if self.values is not None:
            return is_one_of(value, self.values)
        return all(
            (order := _compare(value, bound)) is not None and order * sign >= 0
            for bound, sign in ((self.at_least, 1), (self.at_most, -1))
            if bound is not None
        )


def _compare(value: object, bound: Scalar) -> int | None:
    """Return -1, 0 or 1 as the value is below, at or above the bound, or None where they cannot be compared."""
    if isinstance(bound, str):
        left, right = _version(value), _version(bound)
        return None if left is None or right is None else (left > right) - (left < right)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return (value > bound) - (value < bound)


def _version(value: object) -> tuple[int, ...] | None:
    found = _VERSION.search(str(value)) if isinstance(value, str | int | float) else None
    return None if found is None else tuple(int(part) for part in found[0].split("."))


Clause = Mapping[str, Wanted]


class Conditional(SpaceModel):
    """Something that applies only where all of its conditions hold; without any, everywhere."""

    when: Clause = Field(default_factory=dict)
    """Parameter → wanted values."""
    where: Clause = Field(default_factory=dict)
    """Fact of the node → wanted values; `packages.NAME` reaches into a fact that is a mapping."""


class Effect(Conditional):
    """How values of parameters change one component of a step. All `times` multiply, then all `plus_us` add."""

    component: Component
    times: Annotated[float, Field(gt=0)] | None = None
    plus_us: float | None = None
    concurrency: Wanted | None = None
    """Concurrency levels at which it applies; by default all."""
    why: str

    @model_validator(mode="after")
    def _is_one_change(self) -> Effect:
        if (self.times is None) == (self.plus_us is None):
            raise ValueError("needs exactly one of 'times' and 'plus_us'")
        if self.component == "acceptance" and self.times is None:
            raise ValueError("acceptance is a probability: change it with 'times'")
        return self


class Compute(SpaceModel):
    """Time that the GPUs compute in one pass, in microseconds: base + per row x rows."""

    base_us: Annotated[float, Field(ge=0)]
    per_row_us: Annotated[float, Field(ge=0)] = 0.0


class Communication(SpaceModel):
    """Time of the collectives of one pass: calls x (latency + per row x rows)."""

    calls_per_pass: Annotated[float, Field(ge=0)]
    latency_us: Annotated[float, Field(ge=0)]
    per_row_us: Annotated[float, Field(ge=0)] = 0.0


class Draft(SpaceModel):
    """Speculation: which parameter says how many tokens are drafted, what they cost, how often they are accepted."""

    parameter: str
    offset: int = 0
    """Added to the parameter's value: -1 where it counts the verified tokens, which are one more than the drafted."""
    off_when: Clause = Field(default_factory=dict)
    """Parameter → values with which nothing is drafted, whatever the draft length says."""
    us_per_token: Annotated[float, Field(ge=0)]
    per_request_us: Annotated[float, Field(ge=0)] = 0.0
    """Further time of each drafted token for each request in flight."""
    acceptance: tuple[Share, ...] = Field(min_length=1)
    """Probability that position 1, 2, … is accepted when the positions before it were; the last one goes on."""


class Performance(SpaceModel):
    """How long a step takes and what it emits. rows = concurrency x (drafted tokens + 1)."""

    compute: Compute
    communication: Communication
    draft: Draft | None = None
    effects: tuple[Effect, ...] = ()


class Noise(SpaceModel):
    """Standard deviations as shares of the value."""

    launch_sd: Annotated[float, Field(ge=0, lt=1)] = 0.04
    """From launch to launch: one offset for everything that a launch measures."""
    request_sd: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """From request to request within a launch."""
    probe_sd: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """From probe to probe."""


class DurationEffect(Conditional):
    """How values of parameters change the seconds of one phase."""

    phase: PhaseName
    times: Annotated[float, Field(gt=0)] | None = None
    plus_s: float | None = None
    why: str

    @model_validator(mode="after")
    def _is_one_change(self) -> DurationEffect:
        if (self.times is None) == (self.plus_s is None):
            raise ValueError("needs exactly one of 'times' and 'plus_s'")
        return self


class Durations(SpaceModel):
    """Seconds of each phase of a healthy launch; a phase that is not listed takes none."""

    full: Mapping[PhaseName, Seconds]
    probe: Mapping[PhaseName, Seconds] = Field(default_factory=dict)
    dummy: Mapping[PhaseName, Seconds] | None = None
    """Of a launch with made-up weights and few layers; by default it follows from `full`."""
    serve_s: Seconds | None = None
    """Seconds of serving all levels; by default what the workload's requests take at the modelled speed."""
    requests: Annotated[int, Field(ge=1)] = 16
    """Requests for each level where the workload does not say."""
    output_tokens: Annotated[int, Field(ge=1)] = 256
    """Tokens of each request where the workload does not say."""
    prefill_ms: Annotated[float, Field(ge=0)] = 100.0
    """Time to the first token, in milliseconds."""
    effects: tuple[DurationEffect, ...] = ()
    """Of full launches."""


class PlantedExit(SpaceModel):
    """How the launch's leader ended."""

    code: int | None = None
    signal: int | None = None
    cause: Literal["exited", "deadline", "no_progress", "decisive_line"] = "exited"


def _text_lines(written: object) -> object:
    lines = written.splitlines() if isinstance(written, str) else written
    return tuple(lines) if isinstance(lines, list) else lines  # strict: a list of Python is no tuple


class PlantedFailure(Conditional):
    """A set of assignments whose launches fail, and how such a failure looks."""

    name: str
    reason: str
    """Code of the reason, as the agent's pages about reasons list them."""
    phase: PhaseName
    seconds: Seconds = 5.0
    """Spent in that phase before the launch is over."""
    log: Annotated[tuple[str, ...], BeforeValidator(_text_lines)] = Field(min_length=1)
    """The lines that the engine leaves, root first or wherever the engine prints it."""
    exit: PlantedExit = PlantedExit(code=1)
    rung: RungName | None = None
    """Cheapest rung at which it shows; none given: a dummy launch where reason and phase do not hang on the weights."""
    probability: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Below 1 it is flaky: launches of the same assignment fail now and then."""
    blames: tuple[str, ...] | None = None
    """Parameters that the evidence accuses; none given: what a classification rule makes of the log."""

    @property
    def is_flaky(self) -> bool:
        """True when it does not always happen."""
        return self.probability < 1.0


class NoOp(Conditional):
    """Values that the engine silently replaces: the launch is the one with the resolved values."""

    resolved: Mapping[str, StrictScalar] = Field(min_length=1)
    why: str
    """The evidence: what the engine's log or its resolved arguments say."""
    seen: Literal["resolve", "effects"] = "effects"
    """Whether the engine tells before the launch (`resolve`), or only what ran tells (`effects`)."""
