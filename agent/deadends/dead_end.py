"""A dead end: a conjunction of conditions that fails for one reason, as far as its scope reaches."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from enum import StrEnum

from agent.reasons import Policy, Reason
from runners import Frozen, Rung
from search_spaces import Assignment, Scalar
from search_spaces.assignment import is_one_of
from search_spaces.condition import Conjunction, matches_all
from search_spaces.switches import spelled


class DeadEndState(StrEnum):
    """How sure the map is."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"
    FLAKY = "flaky"
    """The very same launch failed once and passed once: nothing is concluded."""
    REFUTED = "refuted"
    """Was confirmed, until a launch or probe in it passed: blocks nothing, and is shown with what passed."""
    STALE = "stale"
    """Inherited from a study where a fact it depends on was another one: blocks nothing until it is re-checked."""


class EscapeState(StrEnum):
    """What is known of a near variant."""

    UNTRIED = "untried"
    WORKED = "worked"
    FAILED = "failed"


class Escape(Frozen):
    """A near variant of a dead end's value: what may be set in its place."""

    instead: Assignment
    """Parameter → the value to take."""
    why: str
    """Why it may work where the value does not."""
    state: EscapeState = EscapeState.UNTRIED
    trial: str = ""
    """Label of the trial that showed it; empty while it is untried."""

    @property
    def changes(self) -> str:
        """Return the variant in words: `nccl_algo=allreduce:tree`."""
        return " ".join(f"{name}={spelled(value)}" for name, value in self.instead.items())

    def __str__(self) -> str:
        return f"{self.changes} {self.state.value}" + (f" in {self.trial}" if self.trial else "")


class Origin(Frozen):
    """Where an inherited dead end was learned."""

    study: str
    support: tuple[str, ...]
    """Labels of that study's trials that failed like this."""
    scope: Mapping[str, object]
    """The facts it depends on, as they were there."""

    def __str__(self) -> str:
        return f"{self.study} ({' '.join(self.support)})"


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
    depends_on: tuple[str, ...] = ()
    """Names of the facts it depends on; `scope` has those of them that the node has."""
    escapes: tuple[Escape, ...] = ()
    """Near variants of its values, as far as they were tried."""
    origin: Origin | None = None
    """The earlier study it was inherited from; None for what this study found by itself."""
    within: Mapping[str, tuple[Scalar, ...]] = {}
    """For an inherited one: the values of further parameters that its study knew. It says nothing beyond them."""

    def matches(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether the assignment lies in the dead end, as far as it reaches."""
        known = all(is_one_of(assignment[name], values) for name, values in self.within.items())
        return known and matches_all(self.conditions, assignment)

    def covers(self, assignment: Mapping[str, Scalar], visible: Collection[str]) -> bool:
        """Return whether a trial of the assignment that could tell the `visible` parameters apart lies in it."""
        can_see = all(condition.parameter in visible for condition in self.conditions)
        return can_see and self.matches(assignment)

    def holds_on(self, facts: Mapping[str, object]) -> bool:
        """Return whether a node with these facts is in its scope."""
        return all(_plain(self.scope.get(name)) == _plain(facts.get(name)) for name in self.depends_on)

    def blocks(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether the assignment must not be launched.

        A confirmed dead end blocks wherever it matches; a suspected one only where everything that may belong to the
        cause has the values it was seen with, since a failed single change proves no more than that.
        """
        if self.state is DeadEndState.CONFIRMED:
            return self.matches(assignment)
        if self.state is DeadEndState.SUSPECTED:
            if not matches_all(self.conditions, assignment):
                return False
            named = {condition.parameter for condition in self.conditions}
            return all(assignment[name] == self.observed[name] for name in self.suspects if name not in named)
        return False

    @property
    def asked_about(self) -> tuple[str, ...]:
        """The parameters whose values decide whether it blocks."""
        rest = self.within if self.state is DeadEndState.CONFIRMED else self.suspects
        return tuple(dict.fromkeys((*(condition.parameter for condition in self.conditions), *rest)))

    def may_block(self, name: str, value: Scalar) -> bool:
        """Return whether it blocks assignments with this value, if their other values are such as well.

        What says so of each parameter that it asks about is blocked, where it blocks anything (`Blocking`).
        """
        own = [condition for condition in self.conditions if condition.parameter == name]
        if not all(condition.matches({name: value}) for condition in own):
            return False
        if self.state is DeadEndState.CONFIRMED:
            return name not in self.within or is_one_of(value, self.within[name])
        return bool(own) or name not in self.suspects or value == self.observed[name]

    def __str__(self) -> str:
        return " ∧ ".join(str(condition) for condition in self.conditions)


def _plain(fact: object) -> str:
    """Return a fact as text: what was stored compares equal to what was just read."""
    return json.dumps(fact, sort_keys=True)
