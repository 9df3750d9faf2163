"""What the user is told when a launch left something behind that could not be removed."""

from __future__ import annotations

from agent.store.trial import Trial
from runners import RunRecord
from runners.slot_return import left_words


def quarantine_message(trial: Trial, record: RunRecord) -> str:
    """Return why nothing more is launched on a node, and what to do there."""
    return (
        f"node {record.node or 'unknown'} is quarantined: launch #{trial.number} left "
        f"{left_words(record.leftovers)}, which could not be removed, so the next launch would not be measured alone. "
        "Remove it, then resume"
    )


def slot_message(trial: Trial, record: RunRecord) -> str:
    """Return that a slot of a node is given to no trial any more, why, and that the others go on."""
    slot = record.slot.words() if record.slot is not None else "its slot"
    return (
        f"{slot} of node {record.node or 'unknown'} are quarantined: launch #{trial.number} left "
        f"{left_words(record.leftovers)}, which could not be removed. The node's other slots go on; for this one, "
        "remove it, then stop and resume"
    )
