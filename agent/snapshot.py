"""The study as the mirror needs it: trials, probes, documents, the best and the gain."""

from __future__ import annotations

from datetime import datetime

from agent.deadends.observation import trial_label
from agent.mirror.snapshot import StudySnapshot, StudyStatus
from agent.propose.history import History
from agent.propose.model_based import Sampler
from agent.propose.order import Stop, propose
from agent.recovery import owner_of
from agent.report import documents, reproduce_command
from agent.store.study_store import StudyStore
from agent.store.trial import Trial
from agent.summary import summarise


def snapshot_of(store: StudyStore, history: History, status: StudyStatus) -> StudySnapshot:
    """Return everything that MLflow is to hold of a study. It ended, unless it runs, when its last trial was closed."""
    summary = summarise(history, store.name)
    best = summary.best
    command = reproduce_command(history.runner, best.first, store.manifest) if best else None
    return StudySnapshot(
        study=store.name,
        spec=store.manifest.settings.model_dump(mode="json"),
        facts=store.manifest.facts,
        trials=history.trials,
        probes=tuple(sorted((*history.probes, *history.checks), key=lambda each: each.number)),
        documents=documents(summary, command),
        dead_ends={trial.number: dead_end_ids(trial, history) for trial in history.trials if trial.is_failed},
        best=best.first.number if best else None,
        gain=summary.gain,
        verdict=summary.verdict if status == "finished" else "",
        status=status,
        started_at=store.manifest.created_at,
        ended_at=None if status == "running" else _last_closed(history) or store.manifest.created_at,
    )


def status_of(store: StudyStore, history: History) -> StudyStatus:
    """Return whether a stored study is being run, has nothing more to do, or was interrupted."""
    if owner_of(store) is not None:
        return "running"
    proposal = propose(history, Sampler(history.space))
    return "finished" if isinstance(proposal, Stop) and not proposal.resumable else "interrupted"


def _last_closed(history: History) -> datetime | None:
    return max((trial.closed_at for trial in history.trials if trial.closed_at), default=None)


def dead_end_ids(trial: Trial, history: History) -> tuple[str, ...]:
    """Return the ids of the dead ends that a trial is evidence for."""
    return tuple(found.id for found in history.atlas.supported_by(trial_label(trial)))
