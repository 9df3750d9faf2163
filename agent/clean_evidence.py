"""Evidence without the secrets of its launch: what is stored of a log is shown on screens, in maps and in reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent.outcome import Failure, Outcome
from agent.redaction import environment_secrets, redact_text, secrets_of
from runners import EngineSettings, LogLine, RunRecord


def launch_secrets(settings: EngineSettings, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values that an engine of this study gets to see, and may print.

    Args:
        settings: Its fixed options and variables.
        environment: The user's environment, which it inherits.
    """
    words = [word for name, value in settings.options.items() for word in (f"--{name}", str(value))]
    return secrets_of(words, settings.variables) | environment_secrets(environment)


def clean_record(record: RunRecord, secrets: Collection[str]) -> RunRecord:
    """Return the record with its excerpts masked. Command and variables stay: they are what the log is masked by."""
    effects = tuple(
        proof.model_copy(update={"evidence": redact_text(proof.evidence, secrets)}) for proof in record.effects
    )
    excerpt = tuple(_clean(line, secrets) for line in record.excerpt)
    return record.model_copy(update={"excerpt": excerpt, "effects": effects})


def clean_outcome(outcome: Outcome, secrets: Collection[str]) -> Outcome:
    """Return the outcome with its evidence masked."""
    if outcome.failure is None:
        return outcome
    return outcome.model_copy(update={"failure": clean_failure(outcome.failure, secrets)})


def clean_failure(failure: Failure, secrets: Collection[str] = ()) -> Failure:
    """Return the failure with its lines masked."""
    update = {
        "decisive": None if failure.decisive is None else _clean(failure.decisive, secrets),
        "supporting": tuple(_clean(line, secrets) for line in failure.supporting),
    }
    return failure.model_copy(update=update)


def _clean(line: LogLine, secrets: Collection[str]) -> LogLine:
    return LogLine(number=line.number, text=redact_text(line.text, secrets))
