"""What a launch measured, and when it may stop measuring."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from runners.frozen import Frozen
from runners.goodput import Goodput


class Latency(Frozen):
    """Percentiles of a latency, in milliseconds."""

    p50: float
    p99: float


class LevelMeasurement(Frozen):
    """What was measured at one concurrency level."""

    concurrency: int
    output_tok_per_s: float
    """Generated tokens of all requests of the level for each second."""
    ttft_ms: Latency
    tpot_ms: Latency
    step_ms_p50: float
    verify_steps_per_s: float
    acceptance_length: float
    """Tokens emitted for each target pass, 1.0 without speculation."""
    acceptance_per_position: tuple[float, ...] = ()
    e2e_ms: Latency | None = None
    """From sending a request to the end of its answer."""
    requests_per_s: float | None = None
    """Requests of the level that were served in each second."""
    goodput: Goodput | None = None
    """What counts under the workload's limits; None where it has none."""
    dropped_requests: int = 0
    """Requests at the beginning of the level that were left out as its warm-up."""
    dropped_s: float = 0.0
    """Time at the beginning of the level that was left out with them."""


class StopRule(Frozen):
    """When a launch may end its load early: once it is sure that its objective stays below a bar.

    The objective is the geometric mean over the levels of `hopes` of the output tokens per second. Who sets the bar
    knows how much launches of the same assignment differ; the launch itself only knows how much its requests do.
    """

    below: float = Field(gt=0)
    """The bar, in tokens per second."""
    hopes: Mapping[int, float]
    """Level of the objective → the most tokens per second that a launch may turn out to serve there."""


class StoppedEarly(Frozen):
    """How a load ended before its end. Rates in tokens per second, means over the levels as the rule has them."""

    concurrency: int
    """The level in which it ended."""
    requests: int
    """Requests of that level that were served whole."""
    below: float
    """The rule's bar."""
    ceiling: float
    """What the objective could reach at most: below the bar."""
    estimate: float
    """What was served points to."""
    saved_s: float
    """Estimated time that the rest of the load would have taken, in seconds."""


class Measurement(Frozen):
    """What a full launch measured. Per-request records stay in the artifact folder."""

    levels: tuple[LevelMeasurement, ...]
    """By concurrency, the lowest first."""
    output_digest: str | None = None
    """SHA-256 of the greedy outputs of the lowest level."""
    outputs: tuple[tuple[int, ...], ...] = ()
    """First tokens of the greedy outputs of the lowest level, one row a request."""
    collective_us_per_call: float | None = None
    extra: Mapping[str, float] = Field(default_factory=dict)
    """Further figures by name, unit in the name (for example floor_ms)."""
    stopped: StoppedEarly | None = None
    """Set when the load ended early: then some levels are missing, and the last one is of the requests served."""
