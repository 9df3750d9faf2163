"""What is stored of a log goes to screens, maps and reports: no secret of the launch is in it."""

from __future__ import annotations

import pytest

from agent.clean_evidence import clean_outcome, clean_record, launch_secrets
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.reasons import Policy, Reason
from runners import EffectProof, EngineSettings, Exit, LogLine, Phase, RunRecord

SETTINGS = EngineSettings(
    engine="vllm",
    num_ranks=1,
    device="cpu",
    options={"api-key": "sesame-open"},
    variables={"HF_TOKEN": "abc-def-ghi", "HTTPS_PROXY": "http://me:proxy-word@proxy:1"},
)
SECRETS = launch_secrets(SETTINGS, {"WANDB_API_KEY": "inherited-secret", "PATH": "/usr/bin"})
LEAKS = ["sesame-open", "abc-def-ghi", "proxy-word", "inherited-secret"]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_line_of_the_log_is_stored_without_secrets(leak: str) -> None:
    """The decisive line, what supports it, the excerpt and the proofs; their numbers stay."""
    line = LogLine(number=7, text=f"401 for {leak} at hub")
    failure = Failure(
        reason=Reason.UNKNOWN,
        rule="none",
        confidence=1.0,
        phase=Phase.SPAWN,
        decisive=line,
        supporting=(line,),
        policy=Policy.RECORD_ONLY,
        cure="",
    )
    record = RunRecord(
        exit=Exit(code=1),
        phase=Phase.SPAWN,
        wall_s=1.0,
        excerpt=(line,),
        effects=(EffectProof(parameter="p", requested=1, effective=1, evidence=line.text),),
    )
    outcome = clean_outcome(Outcome(kind=OutcomeKind.FAILED, failure=failure), SECRETS)
    shown = outcome.model_dump_json() + clean_record(record, SECRETS).model_dump_json()
    assert leak not in shown
    assert shown.count("401 for *** at hub") == 4
    assert outcome.failure is not None
    assert outcome.failure.decisive == LogLine(number=7, text="401 for *** at hub")


def test_a_measured_outcome_stays_what_it_is() -> None:
    """There is no line in it."""
    outcome = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
    assert clean_outcome(outcome, SECRETS) is outcome
