"""What the map learns from: one closed trial, reduced to where it ran, what it was, and whether it failed."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from agent.deadends.claims import claims, visible_at
from agent.outcome import Failure
from agent.reasons import Policy, Reason
from agent.store.trial import Kind, Trial
from agent.store.trial import trial_label as trial_label  # its older place
from runners import Rung
from search_spaces import Assignment, SearchSpace

GENERALISED = frozenset({Policy.DEAD_AT_ONCE, Policy.CONFIRM_ONCE, Policy.RETRY_ONCE})
"""Policies whose failures may open a dead end; the others blame no parameter."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One closed trial as evidence."""

    label: str
    """`#12` for a launch, `p12` for a probe."""
    rung: Rung
    assignment: Assignment
    visible: tuple[str, ...]
    """Parameters that this rung can tell apart; the others have no bearing on what was seen."""
    failure: Failure | None
    seconds: float
    moment: tuple[datetime, bool, int]
    """Sort key: when it began; of those that began together, probes first."""

    @property
    def passed(self) -> bool:
        """True when the launch worked."""
        return self.failure is None


def observation_of(
    trial: Trial, space: SearchSpace, weightless: Container[tuple[Rung, Reason]] = ()
) -> Observation | None:
    """Return the evidence in a closed trial that passed, or failed with a reason worth generalising; else None.

    Args:
        trial: The trial.
        space: The study's space.
        weightless: (rung, reason) of the claims that a dearer rung contradicted: such failures are no evidence.
    """
    if trial.is_not_probed:
        return None
    seen = _observation(trial, space)
    if seen.failure is not None and (trial.work.rung, seen.failure.reason) in weightless:
        return None
    return seen if seen.failure is None or seen.failure.policy in GENERALISED else None


def _observation(trial: Trial, space: SearchSpace) -> Observation:
    is_probe, rung = trial.work.kind is Kind.PROBE, trial.work.rung
    failure = trial.outcome.failure if trial.outcome and trial.is_failed else None
    # Of what a rung does not claim to find, a pass there says nothing: only launches speak against such a failure.
    is_claimed = failure is None or rung is Rung.PROBE or claims(rung, failure)
    return Observation(
        label=trial_label(trial),
        rung=rung if is_claimed else Rung.FULL,
        assignment=trial.work.resolved,
        visible=visible_at(rung, space),
        failure=failure,
        seconds=trial.record.wall_s if trial.record else 0.0,
        moment=(trial.started_at, not is_probe, trial.number),
    )
