"""Judge the stored failures of a study again, after a rule improved: from the storage and the logs alone.

A closed Optuna trial never changes, so the new verdict is an attribute of the study that is laid over the stored one
whenever the study is read: map, report, explanation and MLflow follow. Kind and budget stay: what failed has failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.classify import Rule
from agent.clean_evidence import clean_failure, launch_secrets
from agent.judge import failure_again
from agent.outcome import Failure
from agent.store.study_store import StudyStore
from agent.store.trial import Trial, trial_label


@dataclass(frozen=True, slots=True)
class Change:
    """A trial whose verdict is another one now."""

    label: str
    before: Failure
    after: Failure


@dataclass(frozen=True, slots=True)
class Reclassified:
    """What judging again came to."""

    judged: int
    """Failures whose log is still there."""
    without_log: tuple[str, ...]
    """Labels of the failures that keep their verdict, since their log is gone."""
    changes: tuple[Change, ...]


def reclassify(store: StudyStore, rules: tuple[Rule, ...], environment: Mapping[str, str]) -> Reclassified:
    """Judge every failure again and store the verdicts that differ; run again, it changes nothing.

    Args:
        store: The study; its owner is whoever calls this.
        rules: What to judge by.
        environment: The environment now: its secrets are masked in the lines that are stored.
    """
    secrets = launch_secrets(store.manifest.settings.engine, environment)
    judged, without_log, changes = 0, [], []
    verdicts = store.verdicts()
    for trial, before in _failures(store):
        label = trial_label(trial)
        if not _has_log(trial):
            without_log.append(label)
            continue
        judged += 1
        found = failure_again(trial, store.manifest.space, rules)
        after = None if found is None else clean_failure(found, secrets)
        if after is not None and after != before:
            verdicts[label] = after
            changes.append(Change(label, before, after))
    if changes:
        store.set_verdicts(verdicts)
    return Reclassified(judged, tuple(without_log), tuple(changes))


def _failures(store: StudyStore) -> Iterator[tuple[Trial, Failure]]:
    for trial in (*store.trials(), *store.probes()):
        if trial.is_closed and trial.is_failed and trial.outcome is not None and trial.outcome.failure is not None:
            yield trial, trial.outcome.failure


def _has_log(trial: Trial) -> bool:
    return trial.record is not None and trial.record.log_path is not None and Path(trial.record.log_path).is_file()
