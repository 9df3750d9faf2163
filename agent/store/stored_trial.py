"""Between Optuna's trials and ours: attributes → Trial, Outcome → state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.outcome import Outcome, OutcomeKind
from agent.store.trial import Trial
from runners import RunRecord

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, TrialState


def trial_of(study: str, stored: FrozenTrial) -> Trial:
    """Return a stored Optuna trial as ours."""
    attributes: Mapping[str, Any] = stored.user_attrs
    outcome = attributes.get("outcome")
    closed_at = (outcome and outcome.get("closed_at")) or _utc(stored.datetime_complete)
    return Trial.model_validate(
        {
            "study": study,
            "number": stored.number,
            "work": attributes["work"],
            **attributes["launch"],
            "started_at": _utc(stored.datetime_start),
            "closed_at": closed_at if stored.state.is_finished() else None,
            "outcome": outcome,
            "record": attributes.get("record"),
        }
    )


def _utc(moment: datetime | None) -> datetime | None:
    # Optuna stores local time without a zone.
    return None if moment is None else moment.astimezone(UTC)


def final_state(outcome: Outcome) -> tuple[TrialState, list[float] | None]:
    """Return the Optuna state that an outcome is told as, and its values."""
    from optuna.trial import TrialState

    if outcome.kind is OutcomeKind.MEASURED and outcome.value is not None:
        return TrialState.COMPLETE, list(outcome.figures.values()) or [outcome.value]
    if outcome.kind in (OutcomeKind.FAILED, OutcomeKind.SLOWER, OutcomeKind.NOT_PROBED):
        return TrialState.PRUNED, None
    return TrialState.FAIL, None


def partial_value(outcome: Outcome, record: RunRecord | None) -> tuple[int, float] | None:
    """Return how many requests a trial that was stopped early had served, and the objective that they point to."""
    stopped = record.measurement.stopped if record is not None and record.measurement is not None else None
    if outcome.kind is not OutcomeKind.SLOWER or outcome.value is None or stopped is None:
        return None
    return stopped.requests, outcome.value
