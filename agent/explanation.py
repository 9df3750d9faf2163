"""One trial explained: what was run, why it failed, what it taught, and which single changes would likely cure it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.deadends.claims import visible_at
from agent.deadends.contradictions import Contradiction
from agent.deadends.dead_end import DeadEnd, EscapeState
from agent.deadends.observation import trial_label
from agent.deadends.suspicion import Suspicion
from agent.errors import UsageError
from agent.propose.history import History
from agent.propose.risk import Risk
from agent.store.trial import Trial
from search_spaces import Assignment, Scalar, changed_parameters, matches_all
from search_spaces.assignment import is_one_of

MOST_CURES = 8
MOST_CAUSES = 6


@dataclass(frozen=True, slots=True)
class Cure:
    """A single change that would likely make the trial work."""

    parameter: str
    value: Scalar
    chance: float
    """Expected probability that the changed launch works, from 0 to 1."""
    trials: tuple[str, ...]
    """Labels of trials with this value that worked."""
    is_escape: bool
    """Whether it worked as an escape from the very dead end."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What may have caused a failure that is not explained yet."""

    conditions: str
    share: float
    """Of all that may have caused it, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class TrialExplanation:
    """Everything that the study can say about one trial."""

    trial: Trial
    base: Assignment
    """What the trial is compared with: what it was changed from, or the engine's default."""
    changes: Assignment
    """Parameter → value that differs from the base."""
    taught: tuple[DeadEnd, ...]
    """Dead ends that the trial supports."""
    refuted: tuple[DeadEnd, ...]
    """Dead ends that it passed in."""
    contradictions: tuple[Contradiction, ...]
    """Where another rung said something else of the same assignment."""
    causes: tuple[Cause, ...]
    """Where nothing is confirmed: what may have caused it, likeliest first."""
    cures: tuple[Cure, ...]
    """Likeliest first; empty for a trial that worked."""


def find_trial(history: History, wanted: str) -> Trial:
    """Return the trial of a label: `#12` or `12` for a launch, `p3` for a probe.

    Raises:
        UsageError: when the label is none, or no trial has it.
    """
    label = wanted.strip().lower().removeprefix("#")
    is_probe = label.startswith("p")
    number = label.removeprefix("p")
    if not (number.isascii() and number.isdecimal()):
        raise UsageError(f"{wanted!r} is no trial: write #12 or 12 for a launch, p3 for a probe")
    trials = (*history.probes, *history.checks) if is_probe else history.trials
    found = next((trial for trial in trials if trial.number == int(number)), None)
    if found is None:
        what = "probe" if is_probe else "launch"
        there_are = f"they go from 0 to {max(each.number for each in trials)}" if trials else "there are none"
        raise UsageError(f"study {history.settings.name} has no {what} {number}: {there_are}")
    return found


def explain(history: History, trial: Trial) -> TrialExplanation:
    """Return what the study knows about one of its trials."""
    base, point, label = trial.work.base or history.default, trial.work.resolved, trial_label(trial)
    taught = history.atlas.supported_by(label)
    suspicion = _suspicion(history, trial, taught)
    return TrialExplanation(
        trial=trial,
        base=base,
        changes={name: point[name] for name in changed_parameters(point, base)},
        taught=taught,
        refuted=tuple(found for found in history.atlas.dead_ends if label in found.contradicting),
        contradictions=tuple(each for each in history.atlas.contradictions if label in (each.below, each.above)),
        causes=tuple(_causes(suspicion)),
        cures=tuple(_cures(history, trial, taught, suspicion)) if trial.is_failed else (),
    )


def _suspicion(history: History, trial: Trial, taught: tuple[DeadEnd, ...]) -> Suspicion | None:
    """Return the open question that the trial is part of: its own, or that of the dead end which it supports."""
    failure = trial.outcome.failure if trial.outcome else None
    alike = [each for each in history.atlas.suspicions if failure and each.failed.failure.reason is failure.reason]
    own = next((each for each in alike if each.failed.seen.label == trial_label(trial)), None)
    point = trial.work.resolved
    return own or next((each for each in alike if taught and matches_all(each.best.conditions, point)), None)


def _causes(suspicion: Suspicion | None) -> Iterator[Cause]:
    for each in suspicion.explanations[:MOST_CAUSES] if suspicion else ():
        yield Cause(" ∧ ".join(map(str, each.conditions)), each.share)


def _cures(history: History, trial: Trial, taught: tuple[DeadEnd, ...], suspicion: Suspicion | None) -> list[Cure]:
    """Rank the single changes to values that were seen to work, and that nothing known or suspected forbids."""
    point, risk = trial.work.resolved, Risk(history)
    names = visible_at(trial.work.rung, history.space)
    accused = _accused(history, trial, taught, suspicion)
    found = []
    for changed in history.space.single_changes(point, tuple(name for name in names if name in accused)):
        settled = history.space.normalise(changed, history.facts)
        name = changed_parameters(changed, point)[0]
        escape = _escape(taught, name, changed[name])
        trials = (escape,) if escape else tuple(_passes(history, name, changed[name]))
        is_said = is_one_of(settled[name], (changed[name],))
        if trials and is_said and history.atlas.match(settled) is None and not history.locked_value(settled):
            found.append(Cure(name, changed[name], risk.chance(settled), trials, bool(escape)))
    return sorted(found, key=lambda cure: (not cure.is_escape, -cure.chance))[:MOST_CURES]


def _accused(history: History, trial: Trial, taught: tuple[DeadEnd, ...], suspicion: Suspicion | None) -> set[str]:
    """Return the parameters of which one has to change: of dead ends and likely causes, else what was changed."""
    named = {condition.parameter for found in taught for condition in found.conditions}
    if suspicion is not None:
        named |= {each.parameter for cause in suspicion.explanations[:MOST_CAUSES] for each in cause.conditions}
    failure = trial.outcome.failure if trial.outcome else None
    named = named or set(failure.blames if failure else ())
    return named or set(changed_parameters(trial.work.resolved, trial.work.base or history.default))


def _escape(taught: tuple[DeadEnd, ...], name: str, value: Scalar) -> str:
    """Return the trial in which this value worked as an escape from what the trial taught, or nothing."""
    for escape in (each for found in taught for each in found.escapes):
        is_it = set(escape.instead) == {name} and is_one_of(escape.instead[name], (value,))
        if is_it and escape.state is EscapeState.WORKED:
            return escape.trial
    return ""


def _passes(history: History, name: str, value: Scalar) -> Iterator[str]:
    """Yield the trials with this value that worked: launches first, since they show more."""
    is_visible = history.space.parameters[name].seen_by_probe
    for trial in (*history.trials, *(history.probes if is_visible else ())):
        if trial.works and is_one_of(trial.work.resolved[name], (value,)):
            yield trial_label(trial)
