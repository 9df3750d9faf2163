"""What a modelled node does with an assignment: pure functions of the model, without noise.

Clauses are turned into sets of domain values once, so that an answer is a few set look-ups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from search_spaces.assignment import Assignment, Facts, Scalar
from search_spaces.node_parts import (
    PHASES,
    Clause,
    Component,
    Conditional,
    Draft,
    Effect,
    NoOp,
    Performance,
    PlantedFailure,
    Wanted,
)
from search_spaces.node_rungs import shows_at
from search_spaces.space import SearchSpace

Allowed = tuple[tuple[str, frozenset[Scalar]], ...]
"""Parameter → the values of its domain with which a clause holds."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One step at one concurrency level, without noise. Times in microseconds."""

    concurrency: int
    compute_us: float
    us_per_call: float
    """Time of one collective call, effects included."""
    calls_per_pass: float
    draft_us: float
    step_us: float
    accepted: tuple[float, ...]
    """Probability that at least position 1, 2, … of the draft is accepted."""

    @property
    def emitted(self) -> float:
        """Tokens emitted for each step and request: 1 + the sum over `accepted`."""
        return 1.0 + math.fsum(self.accepted)

    @property
    def communication_us(self) -> float:
        """Time of all collectives of one pass."""
        return self.us_per_call * self.calls_per_pass

    @property
    def tok_per_s(self) -> float:
        """Generated tokens of all requests for each second."""
        return self.concurrency * self.emitted * 1e6 / self.step_us


def fact(facts: Facts, name: str) -> object:
    """Return a fact by name; `packages.NAME` reaches into a fact that is a mapping."""
    outer, _, inner = name.partition(".")
    found = facts.get(outer)
    return found.get(inner) if inner and isinstance(found, Mapping) else found


def applies_here(conditional: Conditional, facts: Facts) -> bool:
    """Return whether the facts are those that a condition asks for."""
    return all(wanted.holds_for(fact(facts, name)) for name, wanted in conditional.where.items())


class Answers:
    """A node's performance, failures and silent fallbacks, prepared for its space and facts."""

    def __init__(
        self,
        space: SearchSpace,
        facts: Facts,
        performance: Performance,
        failures: Iterable[PlantedFailure],
        no_ops: Iterable[NoOp],
    ) -> None:
        self._space, self.facts, self.performance = space, facts, performance
        ordered = sorted((each for each in failures if applies_here(each, facts)), key=_phase_index)
        self.failures = tuple((each, self.allowed(each.when)) for each in ordered)
        """Those of this node with their conditions, earliest phase first, and within a phase as the file has them."""
        self.no_ops = tuple((each, self.allowed(each.when)) for each in no_ops if applies_here(each, facts))
        self.effects = tuple(
            (each, self.allowed(each.when)) for each in performance.effects if applies_here(each, facts)
        )
        self.off_when = self._any_of(performance.draft)

    def allowed(self, clause: Clause) -> Allowed:
        """Return a clause over parameters as sets of values."""
        return tuple((name, self._values(name, wanted)) for name, wanted in clause.items())

    def _values(self, name: str, wanted: Wanted) -> frozenset[Scalar]:
        return frozenset(value for value in self._space.parameters[name].domain if wanted.holds_for(value))

    def _any_of(self, draft: Draft | None) -> Allowed:
        return self.allowed(draft.off_when) if draft else ()

    def resolved(self, assignment: Mapping[str, Scalar], *, told_only: bool = False) -> tuple[Assignment, list[NoOp]]:
        """Return what really runs for an assignment, and the silent fallbacks that make it so.

        Args:
            assignment: A complete assignment.
            told_only: Apply only what the engine tells before the launch.
        """
        values, taken = dict(assignment), list[NoOp]()
        for _ in self.no_ops:  # one may lead into another; as many rounds as there are always suffice
            hit = next((each for each in self._hits(values, told_only) if each not in taken), None)
            if hit is None:
                break
            values.update(hit.resolved)
            taken.append(hit)
        return (self._space.normalise(values, self.facts) if taken else values), taken

    def _hits(self, values: Mapping[str, Scalar], told_only: bool) -> Iterable[NoOp]:
        return (
            each
            for each, allowed in self.no_ops
            if holds(allowed, values) and (each.seen == "resolve" or not told_only)
        )

    def matching(self, effective: Mapping[str, Scalar], rung: str) -> list[PlantedFailure]:
        """Return the planted failures that an effective assignment meets at a rung, the one that shows first first."""
        return [failure for failure, allowed in self.failures if shows_at(failure, rung) and holds(allowed, effective)]

    def num_drafted(self, effective: Mapping[str, Scalar]) -> int:
        """Return how many tokens are drafted for each pass; 0 without speculation."""
        draft = self.performance.draft
        if draft is None or (self.off_when and any(effective[name] in off for name, off in self.off_when)):
            return 0
        value = effective[draft.parameter]
        return max(0, int(value) + draft.offset) if isinstance(value, int | float) else 0

    def figures(self, effective: Mapping[str, Scalar], concurrency: int) -> Figures:
        """Return the step of an effective assignment at one level."""
        changes = Changes()
        for effect, allowed in self.effects:
            if holds(allowed, effective):
                changes.add(effect, concurrency)
        return self.step(self.num_drafted(effective), concurrency, changes)

    def step(self, drafted: int, concurrency: int, changes: Changes) -> Figures:
        """Return the step of a pass with so many drafted tokens and these changes."""
        model = self.performance
        rows = concurrency * (drafted + 1)
        compute_us = changes.applied("compute", model.compute.base_us + model.compute.per_row_us * rows)
        calls = model.communication.calls_per_pass
        call_us = model.communication.latency_us + model.communication.per_row_us * rows
        communication_us = changes.applied("communication", calls * call_us)
        draft_us = changes.applied("draft", self._draft_us(drafted, concurrency)) if drafted else 0.0
        return Figures(
            concurrency=concurrency,
            compute_us=compute_us,
            us_per_call=communication_us / calls if calls else 0.0,
            calls_per_pass=calls,
            draft_us=draft_us,
            step_us=changes.applied("step", compute_us + communication_us + draft_us),
            accepted=self._accepted(drafted, changes.times["acceptance"]),
        )

    def _draft_us(self, drafted: int, concurrency: int) -> float:
        draft = self.performance.draft
        return drafted * (draft.us_per_token + draft.per_request_us * concurrency) if draft else 0.0

    def _accepted(self, drafted: int, times: float) -> tuple[float, ...]:
        draft = self.performance.draft
        if draft is None or not drafted:
            return ()
        chances, reached, found = draft.acceptance, 1.0, list[float]()
        for position in range(drafted):
            reached *= min(1.0, chances[min(position, len(chances) - 1)] * times)
            found.append(reached)
        return tuple(found)


class Changes:
    """What effects do to each component of a step: all `times` together, and the sum of all `plus_us`."""

    def __init__(self) -> None:
        self.times: dict[str, float] = dict.fromkeys(get_args(Component), 1.0)
        self.plus_us: dict[str, float] = dict.fromkeys(get_args(Component), 0.0)

    def add(self, effect: Effect, concurrency: int) -> None:
        """Take in an effect, where it speaks of this level."""
        if effect.concurrency is not None and not effect.concurrency.holds_for(concurrency):
            return
        if effect.times is not None:
            self.times[effect.component] *= effect.times
        if effect.plus_us is not None:
            self.plus_us[effect.component] += effect.plus_us

    def applied(self, component: str, microseconds: float) -> float:
        """Return a component's time with its changes."""
        return max(microseconds * self.times[component] + self.plus_us[component], 1e-3)


def holds(allowed: Allowed, values: Mapping[str, Scalar]) -> bool:
    """Return whether an assignment satisfies a prepared clause."""
    return all(values[name] in wanted for name, wanted in allowed)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _phase_index(failure: PlantedFailure) -> int:
    return PHASES.index(failure.phase)
