"""The study as the mirror needs it: trials, probes, documents, the best and the gain."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from agent.absent import missing
from agent.deadends.atlas import Atlas
from agent.deadends.observation import trial_label
from agent.epochs import chart_at
from agent.mirror.snapshot import StudySnapshot, StudyStatus
from agent.propose.history import History
from agent.propose.model_based import Sampler
from agent.propose.order import Stop, propose
from agent.recovery import owner_of
from agent.report import documents, reproduce_command
from agent.schedule_report import schedule_commands
from agent.store.study_store import StudyStore
from agent.store.trial import Trial
from agent.summary import summarise
from agent.wishes import read_counts, read_wishes


def snapshot_of(store: StudyStore, history: History, status: StudyStatus) -> StudySnapshot:
    """Return everything that MLflow is to hold of a study. It ended, unless it runs, when its last trial was closed."""
    summary = summarise(history, store.name, read_counts(store))
    best = summary.best
    command = reproduce_command(history.runner, best.first, store.manifest) if best else None
    told = summary.schedule
    commands = schedule_commands(told, history.runner, store.manifest) if told and status != "running" else None
    return StudySnapshot(
        study=store.name,
        spec=store.manifest.settings.model_dump(mode="json"),
        facts=store.manifest.facts,
        trials=store.trials(),
        probes=store.probes(),
        documents=documents(summary, command, commands),
        dead_ends={**_of_earlier_epochs(store), **_supported(history.trials, history.atlas)},
        best=best.first.number if best else None,
        gain=summary.gain,
        interval=(summary.comparison.low, summary.comparison.high) if summary.comparison else None,
        verdict=summary.verdict if status == "finished" else "",
        status=status,
        started_at=store.manifest.created_at,
        ended_at=None if status == "running" else _last_closed(store) or store.manifest.created_at,
    )


def status_of(store: StudyStore, history: History) -> StudyStatus:
    """Return whether a stored study is being run, has nothing more to do, or was interrupted."""
    if owner_of(store) is not None:
        return "running"
    if missing(history.runner):  # nobody to propose with: the budget alone tells
        return "finished" if history.spent >= history.budget else "interrupted"
    proposal = propose(history, Sampler(history.space))
    return "finished" if isinstance(proposal, Stop) and not proposal.resumable else "interrupted"


def _last_closed(store: StudyStore) -> datetime | None:
    return max((trial.closed_at for trial in store.trials() if trial.closed_at), default=None)


def _of_earlier_epochs(store: StudyStore) -> dict[int, tuple[str, ...]]:
    """Return what the trials support that were made before the environment changed, by the map of their time."""
    forgotten = read_wishes(store).forgotten_names if len(store.epochs) > 1 else frozenset()
    found: dict[int, tuple[str, ...]] = {}
    for epoch in range(len(store.epochs) - 1):
        found |= _supported(store.trials_of(epoch), chart_at(store, epoch, forgotten))
    return found


def _supported(trials: Iterable[Trial], atlas: Atlas) -> dict[int, tuple[str, ...]]:
    failed = (trial for trial in trials if trial.is_failed)
    return {trial.number: tuple(found.id for found in atlas.supported_by(trial_label(trial))) for trial in failed}


def dead_end_ids(trial: Trial, history: History) -> tuple[str, ...]:
    """Return the ids of the dead ends that a trial is evidence for."""
    return tuple(found.id for found in history.atlas.supported_by(trial_label(trial)))
