"""A study in figures: arms, the best, its gain over the baseline, and what it cost. A pure function of the trials."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from agent.classify import own_agreement
from agent.deadends.atlas import Atlas
from agent.deadends.contradictions import Contradiction
from agent.drift import Drift, drift_of
from agent.effects import contradictions, unproven
from agent.front import front, is_feasible, mean_figures
from agent.goals import OUTPUT, Goal
from agent.judge import baselines_of
from agent.modelled import modelled_name
from agent.outcome import LAUNCH_ENDS
from agent.propose.history import History
from agent.propose.standing import Standing
from agent.reasons import Reason
from agent.rungs import RungCost, costs_of
from agent.saved import NOTHING, Saved, saved_in
from agent.savings import Counts
from agent.schedule import Schedule, schedule_of
from agent.store.trial import Trial
from agent.verdict import Comparison, Verdict
from runners import Rung
from runners.simulated_acceptance import simulated_length
from search_spaces import Assignment


@dataclass(frozen=True, slots=True)
class Arm:
    """All measured launches of one resolved assignment."""

    assignment: Assignment
    trials: tuple[Trial, ...]
    values: tuple[float, ...]
    """Objective of each launch, oldest first: by default the geometric mean over the levels of output tokens per
    second; of several goals their compromise."""

    @property
    def mean(self) -> float:
        """Mean objective over the launches."""
        return statistics.fmean(self.values)

    @property
    def first(self) -> Trial:
        """The launch that stands for the arm."""
        return self.trials[0]


@dataclass(frozen=True, slots=True)
class FrontArm:
    """One arm of the front of several goals."""

    arm: Arm
    figures: tuple[float, ...]
    """Mean of each goal's figure over the launches, in its unit."""
    keeps_limits: bool


@dataclass(frozen=True, slots=True)
class StudySummary:
    """What a reader wants to know first."""

    study: str
    budget: int
    spent: int
    outcomes: Mapping[str, int]
    num_probes: int
    node_s: float
    """Node time of all launches and probes, in seconds."""
    baseline: Arm | None
    best: Arm | None
    atlas: Atlas
    ruled_out: Mapping[str, int]
    default: Assignment
    stops_at: Rung | None = None
    """The rung at which a study stops that was asked to launch nothing in full; None for all others."""
    modelled: str = ""
    """Name of the modelled node whose answers these are; empty where engines really ran."""
    unknown: tuple[Trial, ...] = ()
    """Failures that no rule recognises: the next rules to write."""
    replaced: tuple[Trial, ...] = ()
    """Trials that did not get everything that they asked for."""
    unproven: Mapping[str, str] = field(default_factory=dict)
    """Parameter → why nobody can tell whether it took effect."""
    rungs: Mapping[Rung, RungCost] = field(default_factory=dict)
    """What was run at each rung, cheapest first."""
    contradictions: tuple[Contradiction, ...] = ()
    """Where two rungs disagreed about an assignment."""
    earlier: int = 0
    """Launches that count and were made before the environment changed: nothing else here speaks of them."""
    simulated_acceptance: float | None = None
    """Tokens for each verify pass that the engine was told to pretend; None where drafts were really judged."""
    comparison: Comparison | None = None
    """The best, or where the baseline is the best the next one, against the baseline; None where too little was
    repeated for an interval."""
    schedule: Schedule | None = None
    """Draft length for each concurrency; None where fewer than two lengths were measured."""
    own_agreement: float | None = None
    """Share of the greedy tokens in which two launches of the baseline agree; None where it was launched once."""
    drift: Drift | None = None
    """Change of the baseline over the study's time; None where it was launched too seldom."""

    goals: tuple[Goal, ...] = (OUTPUT,)
    """What the study searches for."""
    front: tuple[FrontArm, ...] = ()
    """Of several goals: the arms of which no other one is better in all, those that break limits last."""
    saved_s: float = 0.0
    """Estimated time that the loads which were stopped early would still have taken, in seconds."""
    saved: Saved = NOTHING
    """Node time that was not spent, by what spared it."""

    @property
    def gain(self) -> float | None:
        """Best objective divided by the baseline's, or None where one is missing: by repeats, where there are any."""
        if self.best is None or self.baseline is None:
            return None
        if self.best.assignment == self.baseline.assignment:
            return 1.0
        return self.comparison.ratio if self.comparison else self.best.mean / self.baseline.mean

    @property
    def verdict(self) -> str:
        """`gain`, `no gain` or `not separable within the budget`; empty where nothing can be compared."""
        if self.gain is None or self.best is None or self.baseline is None:
            return ""
        if self.comparison is not None:
            return self.comparison.verdict.value
        is_baseline = self.best.assignment == self.baseline.assignment
        return (Verdict.NO_GAIN if is_baseline else Verdict.NOT_SEPARABLE).value

    def changes(self, assignment: Assignment) -> str:
        """Return how an assignment differs from the engine's default, in words."""
        return changes_from(self.default, assignment)


def changes_from(default: Assignment, assignment: Assignment) -> str:
    """Return how an assignment differs from the default, in words."""
    changed = [f"{name}={_text(value)}" for name, value in assignment.items() if value != default[name]]
    return " ".join(changed) or "default"


def summarise(history: History, name: str, ruled_out: Counts = MappingProxyType({})) -> StudySummary:
    """Return the summary of a study.

    Args:
        history: Its trials.
        name: Its name.
        ruled_out: What each dead end of its map ruled out (`agent.wishes.read_counts`).
    """
    arms, standing = arms_of(history.trials), Standing(history.evenly)
    winner, modelled = standing.winner, modelled_name(history.settings.engine, history.facts)
    by_key = {arm.first.work.key: arm for arm in arms}
    outcomes = Counter(trial.outcome.kind.value for trial in history.trials if trial.outcome is not None)
    everything = (*history.trials, *history.probes, *history.checks)
    return StudySummary(
        study=name,
        budget=history.budget,
        spent=history.earlier + sum(trial.counts for trial in history.trials),
        earlier=history.earlier,
        outcomes={kind.value: outcomes[kind.value] for kind in LAUNCH_ENDS},
        num_probes=sum(probe.counts and not probe.is_not_probed for probe in history.probes),
        node_s=sum(trial.record.wall_s for trial in everything if trial.record),
        baseline=by_key.get(history.baseline_key or ""),
        best=by_key.get(winner or ""),
        atlas=history.atlas,
        ruled_out=dict(history.ruled_out),
        default=history.default,
        stops_at=None if history.settings.max_rung is Rung.FULL else history.settings.max_rung,
        modelled=modelled,
        unknown=tuple(trial for trial in everything if _is_unknown(trial)),
        replaced=tuple(trial for trial in history.trials if contradictions(trial)),
        unproven=unproven(history.trials, history.space),
        rungs=costs_of(everything),
        contradictions=history.atlas.contradictions,
        simulated_acceptance=simulated_length(history.settings.engine),
        goals=history.settings.goals,
        front=tuple(_front(arms, history)),
        comparison=standing.comparison(winner),
        schedule=_schedule(history, winner),
        own_agreement=own_agreement(baselines_of(history.trials)),
        drift=None if modelled else drift_of(_baseline_launches(history)),  # a model's launches take no time
        saved_s=sum(trial.saved_s for trial in history.trials),
        saved=saved_in(history, ruled_out),
    )


def _front(arms: Sequence[Arm], history: History) -> Iterator[FrontArm]:
    """Yield the front: of the arms that keep the limits where any does, else of all of them."""
    goals, limits = history.settings.goals, history.settings.workload.slo
    if len(goals) == 1:
        return
    kept = {arm.first.work.key: arm for arm in arms if is_feasible(arm.trials, limits)}
    considered = kept or {arm.first.work.key: arm for arm in arms}
    figures = {key: mean_figures(arm.trials) for key, arm in considered.items()}
    for key in front(figures, goals):
        yield FrontArm(considered[key], figures[key], keeps_limits=key in kept)


def _schedule(history: History, winner: str | None) -> Schedule | None:
    if winner is None:
        return None
    space, facts = history.space, history.facts
    return schedule_of(space, facts, history.trials, history.measured[winner], history.baseline_key)


def _baseline_launches(history: History) -> list[tuple[datetime, float]]:
    measured = (trial for trial in history.trials if trial.is_measured and trial.work.key == history.baseline_key)
    return [(t.started_at, t.outcome.value) for t in measured if t.outcome is not None and t.outcome.value is not None]


def _is_unknown(trial: Trial) -> bool:
    failure = trial.outcome.failure if trial.outcome is not None else None
    return failure is not None and failure.reason is Reason.UNKNOWN


def arms_of(trials: Sequence[Trial]) -> list[Arm]:
    """Return the measured launches by their resolved assignment, in order of first measurement."""
    grouped: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.is_measured:
            grouped.setdefault(trial.work.key, []).append(trial)
    return [
        Arm(
            assignment=group[0].work.resolved,
            trials=tuple(group),
            values=tuple(t.outcome.value for t in group if t.outcome is not None and t.outcome.value is not None),
        )
        for group in grouped.values()
    ]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
