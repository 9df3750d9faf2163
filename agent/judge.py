"""Evidence → outcome, in the light of the study: the classifier's verdict, the baseline's output, earlier attempts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from agent.classify import RULES, Rule, check_outputs, classify, wrong_output
from agent.clean_evidence import clean_outcome, clean_record
from agent.deadends.refutations import with_refutations
from agent.effects import observed_work, of_active_parameters
from agent.goals import OUTPUT, Goal, compromise, figures_of
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.propose import tallies
from agent.propose.history import ATTEMPTS, History
from agent.reasons import REASONS, Policy, Reason
from agent.shown import with_replaced
from agent.store.trial import Kind, Trial
from runners import Measurement, Phase, Rung, RunRecord
from runners.engine_dialects import spellings
from runners.simulated_acceptance import FIGURE
from search_spaces import SearchSpace

LOST = {
    Rung.RESOLVE: "the engine did not resolve its arguments",
    Rung.PROBE: "the probes' server ended, or its time was over, before it came to this one",
}
"""Rung → what happened to a question of its that got no answer."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial that came back, as it is to be stored."""

    trial: Trial
    """With what the engine was seen to run instead of what was asked for."""
    outcome: Outcome
    record: RunRecord


def judged(
    trial: Trial, record: RunRecord, history: History, rules: tuple[Rule, ...], secrets: Collection[str]
) -> Judged:
    """Return what came of a trial in the light of the study, without secrets.

    Args:
        trial: The trial as it was opened.
        record: Its evidence.
        history: The study in which it is still open. Its map says what a pass refutes.
        rules: What failures are judged by.
        secrets: Values that nothing stored may hold.
    """
    space, facts = history.space, history.facts
    interruptions, baselines = history.interruptions[trial.work.identity], _baselines_for(trial, history)
    outcome = judge(trial, record, space, baselines, interruptions, rules, history.settings.goals)
    cleaned = with_replaced(clean_record(record, secrets), trial.work, space)
    cleaned = of_active_parameters(cleaned, trial.work.resolved, space, facts)
    ran = trial.model_copy(update={"work": observed_work(trial.work, cleaned, space, facts)})
    return Judged(ran, with_refutations(clean_outcome(outcome, secrets), ran, history.atlas, space), cleaned)


def _baselines_for(trial: Trial, history: History) -> list[Measurement]:
    """Return what a launch has to agree with; the baseline itself sets the tolerance, and is not judged by it."""
    launches = tallies.baselines(history)
    return [] if trial.work.key in {each.work.key for each in launches} else baselines_of(launches)


def judge(
    trial: Trial,
    record: RunRecord,
    space: SearchSpace,
    baselines: Sequence[Measurement],
    interruptions: int,
    rules: tuple[Rule, ...] = RULES,
    goals: Sequence[Goal] = (OUTPUT,),
) -> Outcome:
    """Return the outcome of a trial.

    Args:
        trial: The trial that ran.
        record: Its evidence.
        space: The study's space, which knows the parameters' variables.
        baselines: What the launches of the baseline measured so far.
        interruptions: How often this very work ended by the harness's own fault before.
        rules: What failures are judged by.
        goals: What the study searches for.
    """
    if record.exit.cause == "lost":  # an attempt: queued again, but not for ever
        return lost_task(LOST.get(trial.work.rung, "what watches over the engine died"))
    outcome = scored(classify(record, env_names=_parameter_names(space), rules=rules), record, goals)
    if outcome.kind is OutcomeKind.MEASURED and trial.work.rung is Rung.FULL:
        return _with_output_check(outcome, record, baselines)
    failure = outcome.failure
    if failure is not None and failure.policy is Policy.STOP_STUDY:  # launched again once its cause is mended
        return outcome.model_copy(update={"kind": OutcomeKind.INTERRUPTED, "note": failure.reason.value})
    if failure is not None and failure.policy is Policy.RETRY_OURS and interruptions + 1 < ATTEMPTS:
        return outcome.model_copy(update={"kind": OutcomeKind.INTERRUPTED, "note": f"{failure.reason.value}: again"})
    return outcome


def scored(outcome: Outcome, record: RunRecord, goals: Sequence[Goal]) -> Outcome:
    """Return an outcome with the figures of the study's goals; one of a probe or of a failure is left as it is."""
    if outcome.kind is not OutcomeKind.MEASURED or record.measurement is None:
        return outcome
    figures = figures_of(record.measurement, goals)
    if figures is None:
        wanted = ", ".join(goal.name for goal in goals)
        return _harness_failure(f"the launch measured no {wanted}", Phase.SERVE)
    if len(goals) == 1:
        return outcome.model_copy(update={"value": figures[0]})
    named = {goal.name: figure for goal, figure in zip(goals, figures, strict=True)}
    return outcome.model_copy(update={"value": compromise(figures, goals), "figures": named})


def failure_again(trial: Trial, space: SearchSpace, rules: tuple[Rule, ...]) -> Failure | None:
    """Return why a stored trial failed as these rules have it; None where no rule decides (its output was wrong)."""
    known = trial.outcome.failure if trial.outcome else None
    if trial.record is None or known is None or known.reason is Reason.WRONG_OUTPUT:
        return None
    return classify(trial.record, env_names=_parameter_names(space), rules=rules).failure


def _parameter_names(space: SearchSpace) -> dict[str, str]:
    """Variables and long options → parameters, in the words of whichever version of the engine wrote the message."""
    flags = space.flag_names
    others = {f"--{word}": flags[f"--{ours}"] for word, ours in spellings(space.engine).items() if f"--{ours}" in flags}
    return others | flags | space.env_names


def lost_task(why: str) -> Outcome:
    """Return the outcome of a trial whose Ray task is gone without an answer: ours, and queued again."""
    return _harness_failure(why, Phase.SPAWN)


def lost_node(why: str) -> Outcome:
    """Return the outcome of a trial whose node left the cluster: nobody's fault, and queued again."""
    cure = "The work is launched again on another node. A node that keeps leaving needs a look at its own logs."
    return _harness_failure(why, Phase.SPAWN, Reason.NODE_LOST, cure)


def _harness_failure(
    why: str,
    phase: Phase,
    reason: Reason = Reason.BENCHMARK_ERROR,
    cure: str = "Look at Ray's own logs; the work is launched again by itself.",
) -> Outcome:
    failure = Failure(
        reason=reason,
        rule="none",
        confidence=1.0,
        phase=phase,
        policy=REASONS[reason].policy,
        cure=cure,
    )
    return Outcome(kind=OutcomeKind.INTERRUPTED, failure=failure, note=why)


def baselines_of(trials: Iterable[Trial]) -> list[Measurement]:
    """Return what the launches of the baseline put out, oldest first: every later launch has to agree with it."""
    measured = [trial for trial in trials if trial.is_measured and trial.record and trial.record.measurement]
    keys = {trial.work.key for trial in measured if trial.work.kind is Kind.BASELINE}
    return [
        trial.record.measurement
        for trial in measured
        if trial.work.key in keys and trial.record is not None and trial.record.measurement is not None
    ]


def _with_output_check(outcome: Outcome, record: RunRecord, baselines: Sequence[Measurement]) -> Outcome:
    if record.measurement is None or FIGURE in record.measurement.extra:
        return outcome  # with simulated acceptance, tokens are accepted that the model would not have put out
    check = check_outputs(record.measurement, baselines)
    failure = wrong_output(record.measurement, baselines)
    if failure is None:
        return outcome.model_copy(update={"output": check})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure, output=check)
