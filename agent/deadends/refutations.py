"""A dead end that was confirmed and is not any more: never hidden, but shown with the trial that passed in it.

What a trial refutes is noted with its outcome when it is closed, as the map then had it: to find it out afterwards, the
map of every prefix of the trials would have to be learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.deadends.atlas import Atlas
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.observation import observation_of, trial_label
from agent.outcome import Outcome, OutcomeKind
from agent.store.trial import Trial
from search_spaces import SearchSpace


def with_refutations(outcome: Outcome, trial: Trial, atlas: Atlas, space: SearchSpace) -> Outcome:
    """Return the outcome of a trial that is about to be closed, with what it refutes on the map as it is."""
    if outcome.kind not in (OutcomeKind.MEASURED, OutcomeKind.SLOWER):  # one that is slower works all the same
        return outcome
    seen = observation_of(trial.model_copy(update={"outcome": outcome}), space)
    found = atlas.contradicted_by(seen) if seen is not None else ()
    return outcome.model_copy(update={"refutes": found}) if found else outcome


def refuted(trials: Sequence[Trial], forgotten: Iterable[str] = ()) -> list[DeadEnd]:
    """Return what the trials refuted, oldest first."""
    left_out = frozenset(forgotten)
    ordered = sorted(trials, key=lambda trial: (trial.started_at, trial.number))
    return [
        found.model_copy(update={"state": DeadEndState.REFUTED, "contradicting": (trial_label(trial),), "escapes": ()})
        for trial in ordered
        if trial.outcome is not None
        for found in trial.outcome.refutes
        if found.id not in left_out
    ]
