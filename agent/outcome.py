"""What a record means: measured, failed with a reason, slower, or interrupted. The classifier makes these."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from agent.deadends.dead_end import DeadEnd
from agent.reasons import REASONS, Policy, Reason
from runners import Frozen, LogLine, Phase


class OutcomeKind(StrEnum):
    """How a trial ended."""

    MEASURED = "measured"
    FAILED = "failed"
    SLOWER = "slower"
    """Stopped early as clearly slower than the incumbent."""
    INTERRUPTED = "interrupted"
    """The harness's own fault or a kill: blames nothing, and the work is queued again."""
    NOT_PROBED = "not_probed"
    """A probe could not look at it: neither a pass nor a failure. It blames nothing and is not probed again; a launch
    has to show it."""


LAUNCH_ENDS = tuple(kind for kind in OutcomeKind if kind is not OutcomeKind.NOT_PROBED)
"""How a launch may end."""


class Failure(Frozen):
    """A classified failure: the reason, what it rests on, and what it allows to conclude."""

    reason: Reason
    rule: str
    """Code of the rule that won, or `none`."""
    confidence: float
    """1.0: an unambiguous message of the software itself; 0.5: inferred from exit facts and phase alone."""
    phase: Phase
    decisive: LogLine | None = None
    supporting: tuple[LogLine, ...] = ()
    blames: tuple[str, ...] = ()
    """Parameters that the evidence accuses; empty when it accuses none in particular."""
    policy: Policy
    cure: str
    other_reasons: tuple[Reason, ...] = ()
    """Further candidates, most likely first."""
    depends_on: tuple[str, ...] = ()
    """Facts that this very failure hangs on, where its rule knows better than its reason; empty where it does not."""

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts that the failure depends on."""
        return self.depends_on or REASONS[self.reason].facts


class OutputCheck(Frozen):
    """Greedy output against the baseline's."""

    agreement: float
    """Share of token positions that are equal."""
    needed: float
    """Least share that is not a failure: the baseline's agreement with itself, less what few requests leave open."""
    first_differences: tuple[int | None, ...] = ()
    """For each request the first position, from 1, that differs; None where all are equal."""
    num_baselines: int = 1
    """Launches of the baseline behind it."""


class Outcome(Frozen):
    """The meaning of one trial's record."""

    kind: OutcomeKind
    value: float | None = None
    """Objective of a measured trial: the figure of its study's goal, by default the geometric mean over the
    concurrency levels of output tokens per second.
    Of one that was stopped early as slower: what the part that was served points to.
    For a probe: communication time of a verify pass in microseconds. For the rungs that measure nothing: seconds."""
    figures: Mapping[str, float] = Field(default_factory=dict)
    """Goal → its figure, in its unit, where a study has several; then `value` is their compromise (`agent.goals`)."""
    failure: Failure | None = None
    note: str = ""
    output: OutputCheck | None = None
    """How the output compares with the baseline's; None where nothing could be compared."""
    refutes: tuple[DeadEnd, ...] = ()
    """Dead ends that were confirmed until this trial passed in them, as the map had them then."""
    closed_at: datetime | None = None
    """When the trial was closed; set by the store, in the same write as the rest."""
