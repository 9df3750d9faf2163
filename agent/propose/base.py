"""Step 1: a base that works. The engine's default; if it dies, safer and safer ones; then the baseline."""

from __future__ import annotations

from agent.propose.history import History
from agent.store.trial import Kind, Work


def propose(history: History) -> Work | None:
    """Return the engine's default, or the next safer setting; None when every rung of the ladder failed."""
    for step, assignment in enumerate(history.starts):
        stage = "the engine's default" if step == 0 else f"safer setting {step}"
        if (work := history.admit(assignment, Kind.DEFAULT, stage)) is not None:
            return work
    return None


def baseline(history: History) -> Work | None:
    """Return the baseline without speculation, once."""
    if history.base is None:
        return None
    return history.admit(history.without_speculation(history.base), Kind.BASELINE, "baseline without speculation")


def why_nothing_works(history: History) -> str:
    """Return the reasons for which the default and every safer setting failed, in words."""
    reasons = [trial.outcome.failure for trial in history.trials if trial.outcome and trial.outcome.failure]
    if not reasons:
        return "no assignment of the space may be launched: every one breaks a relation"
    lines = dict.fromkeys(f"{failure.reason.value} ({failure.cure})" for failure in reasons)
    return "neither the engine's default nor any safer setting works here: " + "; ".join(lines)
