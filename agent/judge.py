"""Evidence → outcome, in the light of the study: the classifier's verdict, the baseline's output, earlier attempts."""

from __future__ import annotations

from agent.classify import classify, wrong_output
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.propose.history import ATTEMPTS
from agent.reasons import REASONS, Policy, Reason
from agent.store.trial import Trial
from runners import Measurement, Phase, Rung, RunRecord
from runners.engine_dialects import spellings
from runners.simulated_acceptance import FIGURE
from search_spaces import SearchSpace


def judge(
    trial: Trial, record: RunRecord, space: SearchSpace, baseline: Measurement | None, interruptions: int
) -> Outcome:
    """Return the outcome of a trial.

    Args:
        trial: The trial that ran.
        record: Its evidence.
        space: The study's space, which knows the parameters' variables.
        baseline: What the baseline measured, or None while there is none.
        interruptions: How often this very work ended by the harness's own fault before.
    """
    if trial.work.rung is Rung.RESOLVE and record.exit.cause == "lost":
        return lost_task("the engine did not resolve its arguments")
    outcome = classify(record, env_names=_parameter_names(space))
    if outcome.kind is OutcomeKind.MEASURED and trial.work.rung is Rung.FULL:
        return _with_output_check(outcome, record, baseline)
    failure = outcome.failure
    if failure is not None and failure.policy is Policy.STOP_STUDY:  # launched again once its cause is mended
        return outcome.model_copy(update={"kind": OutcomeKind.INTERRUPTED, "note": failure.reason.value})
    if failure is not None and failure.policy is Policy.RETRY_OURS and interruptions + 1 < ATTEMPTS:
        return outcome.model_copy(update={"kind": OutcomeKind.INTERRUPTED, "note": f"{failure.reason.value}: again"})
    return outcome


def _parameter_names(space: SearchSpace) -> dict[str, str]:
    """Variables and long options → parameters, in the words of whichever version of the engine wrote the message."""
    flags = space.flag_names
    others = {f"--{word}": flags[f"--{ours}"] for word, ours in spellings(space.engine).items() if f"--{ours}" in flags}
    return others | flags | space.env_names


def lost_task(why: str) -> Outcome:
    """Return the outcome of a trial whose Ray task is gone without an answer: ours, and queued again."""
    failure = Failure(
        reason=Reason.BENCHMARK_ERROR,
        rule="none",
        confidence=1.0,
        phase=Phase.SPAWN,
        policy=REASONS[Reason.BENCHMARK_ERROR].policy,
        cure="Look at Ray's own logs; the work is launched again by itself.",
    )
    return Outcome(kind=OutcomeKind.INTERRUPTED, failure=failure, note=why)


def _with_output_check(outcome: Outcome, record: RunRecord, baseline: Measurement | None) -> Outcome:
    if record.measurement is None or baseline is None or FIGURE in record.measurement.extra:
        return outcome  # with simulated acceptance, tokens are accepted that the model would not have put out
    failure = wrong_output(record.measurement, baseline)
    return outcome if failure is None else Outcome(kind=OutcomeKind.FAILED, failure=failure)
