"""A dead end: a conjunction of conditions that fails for one reason, as far as its scope reaches."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from agent.reasons import Policy, Reason
from runners import Frozen, Rung
from search_spaces import Assignment, Scalar
from search_spaces.condition import Conjunction, matches_all


class DeadEndState(StrEnum):
    """How sure the map is."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"
    FLAKY = "flaky"
    """The very same launch failed once and passed once: nothing is concluded."""


class DeadEnd(Frozen):
    """One entry of the map, with everything a reader needs to doubt it."""

    id: str
    conditions: Conjunction
    reason: Reason
    policy: Policy
    state: DeadEndState
    rung: Rung
    """The cheapest rung at which the failure shows: only passes at this rung or above it can refute the dead end."""
    suspects: tuple[str, ...]
    """Parameters that may belong to the cause; the failure was seen with `observed` values of them."""
    observed: Assignment
    scope: Mapping[str, object]
    """The facts the reason depends on, with the values they had."""
    support: tuple[str, ...]
    """Labels of the trials that failed like this, oldest first."""
    contradicting: tuple[str, ...] = ()
    does_not_matter: tuple[str, ...] = ()
    """Parameters that had different values among the supporting trials."""
    decisive: str = ""
    cure: str = ""
    seconds: float = 0.0
    """Node time that the supporting trials took."""

    def blocks(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether the assignment must not be launched.

        A confirmed dead end blocks wherever it matches; a suspected one only where everything that may belong to the
        cause has the values it was seen with, since a failed single change proves no more than that.
        """
        if self.state is DeadEndState.CONFIRMED:
            return matches_all(self.conditions, assignment)
        if self.state is DeadEndState.SUSPECTED:
            named = {condition.parameter for condition in self.conditions}
            as_seen = all(assignment[name] == self.observed[name] for name in self.suspects if name not in named)
            return as_seen and matches_all(self.conditions, assignment)
        return False

    def __str__(self) -> str:
        return " ∧ ".join(str(condition) for condition in self.conditions)
