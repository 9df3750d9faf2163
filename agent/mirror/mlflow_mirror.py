"""Make MLflow equal to the storage: all at once (`sync`), or trial by trial while a study runs (`mirror_trial`).

The order of the writes of one run is the whole protocol: create it with its tags; upload its artifacts; log params,
metrics and, in the same transaction and as the last tag, the digest of all of it; close it. A mirror that is killed
anywhere leaves a run without the digest or without its end, and the next one sees which.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.mirror import schema
from agent.mirror.client import TrackingClient, connect, log_artifacts, log_batch, translated_errors
from agent.mirror.files import MAX_FILE_BYTES, stage
from agent.mirror.found import FoundRun, SealedRun, found_run, keep_best, kept_run, written_run
from agent.mirror.prepared_view import TAG, prepared_view
from agent.mirror.runs import run_of
from agent.mirror.snapshot import MirroredRun, StudySnapshot
from agent.mirror.study_run import end_of, study_run_of
from agent.mirror.tracking import artifact_location
from agent.store.trial import Kind, Trial

_PAGE = 500
_STUDY_KEY = ""
Change = Literal["created", "updated", "unchanged"]


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """How many runs a sync had to touch; the run of the study itself is counted too."""

    created: int
    updated: int
    unchanged: int
    removed: int
    """Duplicates, and runs of trials that the storage does not have; in MLflow's bin, not destroyed."""
    experiment_id: str


class MlflowMirror:
    """Mirrors one study into one MLflow experiment. Not thread-safe; nothing happens before the first call."""

    def __init__(
        self,
        tracking_uri: str,
        *,
        artifact_root: str | None = None,
        max_file_bytes: int = MAX_FILE_BYTES,
        client: TrackingClient | None = None,
    ) -> None:
        """Remember where MLflow is.

        Args:
            tracking_uri: Address of the store or server.
            artifact_root: Folder for the artifacts of new experiments when the store is a database; a server decides
                for itself. None: beside an SQLite file.
            max_file_bytes: Size from which a copied log is cut in its middle.
            client: Another client than MLflow's own.
        """
        self.tracking_uri = tracking_uri
        self._artifact_root = artifact_root
        self._max_file_bytes = max_file_bytes
        self._given_client = client
        self._experiment_id = ""
        self._study = ""
        self._parent_id = ""
        self._runs: dict[str, FoundRun | SealedRun] = {}

    @property
    def experiment_id(self) -> str:
        """Id of the study's experiment; empty before the first call that reaches MLflow."""
        return self._experiment_id

    def experiment_of(self, study: str) -> str | None:
        """Return the id of the experiment that a study is mirrored to, or None where it never was; creates nothing."""
        with translated_errors(self.tracking_uri):
            experiment = self._client.get_experiment_by_name(study)
            return str(experiment.experiment_id) if experiment is not None else None

    def open_study(self, snapshot: StudySnapshot) -> None:
        """Get ready to mirror trials as they close: the experiment, the parent run, and what is there already.

        An existing parent is only marked as running again: its content is brought up to date by the next `sync`.
        """
        with translated_errors(self.tracking_uri):
            self._load(snapshot.study)
            self._runs = {key: kept_run(found) for key, found in self._runs.items() if isinstance(found, FoundRun)}
            parent = self._runs.get(_STUDY_KEY)
            if parent is None:
                self._bring(study_run_of(snapshot))
            elif snapshot.status == "running" and parent.status != "RUNNING":
                self._client.update_run(parent.run_id, status="RUNNING")

    def mirror_trial(self, trial: Trial, dead_ends: Iterable[str] = ()) -> Change:
        """Write one trial, in flight or closed; needs `open_study` first, and again after an error.

        A trial seen in flight costs one call (the run is created, with tags only). Closing costs one batch, one upload
        of its artifacts and one status change, after a creation if it was not seen in flight.
        """
        if trial.study != self._study:
            raise ValueError(f"trial of study {trial.study!r}, but open_study was called for {self._study!r}")
        with translated_errors(self.tracking_uri):
            return self._bring(run_of(trial, tuple(dead_ends)))

    def sync(self, snapshot: StudySnapshot) -> SyncReport:
        """Make MLflow equal to the snapshot, whatever state it is in; a second call changes nothing."""
        counts: dict[Change, int] = {"created": 0, "updated": 0, "unchanged": 0}
        with translated_errors(self.tracking_uri):
            removed = self._load(snapshot.study)
            counts[self._bring(study_run_of(snapshot))] += 1
            wanted = {_STUDY_KEY}
            abandoned_at = end_of(snapshot)
            for trial in snapshot.trials:
                if trial.work.kind is not Kind.PROBE:
                    run = run_of(trial, snapshot.dead_ends.get(trial.number, ()), abandoned_at=abandoned_at)
                    counts[self._bring(run)] += 1
                    wanted.add(run.key)
            removed += self._remove(key for key in list(self._runs) if key not in wanted)
            self._prepare_view(snapshot.study)
        return SyncReport(**counts, removed=removed, experiment_id=self._experiment_id)

    @property
    def _client(self) -> TrackingClient:
        if self._given_client is None:
            self._given_client = connect(self.tracking_uri)
        return self._given_client

    def _prepare_view(self, study: str) -> None:
        """Let the page that opens the study show its trials with their reasons."""
        view = prepared_view()
        if self._client.get_experiment_by_name(study).tags.get(TAG) != view:
            self._client.set_experiment_tag(self._experiment_id, TAG, view)

    def _load(self, study: str) -> int:
        """Find the study's experiment and runs; return how many duplicates were removed."""
        self._study = ""
        self._experiment_id = self._find_experiment(study)
        best, spare = keep_best(self._search(study))
        self._runs = dict(best)
        self._parent_id = self._runs[_STUDY_KEY].run_id if _STUDY_KEY in self._runs else ""
        for found in spare:
            self._client.delete_run(found.run_id)
        self._study = study
        return len(spare)

    def _find_experiment(self, study: str) -> str:
        experiment = self._client.get_experiment_by_name(study)
        if experiment is None:
            return self._create_experiment(study)
        if experiment.lifecycle_stage == "deleted":
            self._client.restore_experiment(experiment.experiment_id)
        return str(experiment.experiment_id)

    def _create_experiment(self, study: str) -> str:
        from mlflow.exceptions import MlflowException

        location = artifact_location(self.tracking_uri, self._artifact_root, study)
        try:
            return self._client.create_experiment(study, location, {schema.EXPERIMENT_KIND: schema.KIND})
        except MlflowException as error:
            # Somebody else may have created it since we looked.
            existing = self._client.get_experiment_by_name(study)
            if existing is None:
                raise error
            return str(existing.experiment_id)

    def _search(self, study: str) -> list[FoundRun]:
        """Return all of the study's runs, oldest first; read to the end before anything is written."""
        found: list[FoundRun] = []
        token: str | None = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id],
                max_results=_PAGE,
                order_by=["attributes.start_time ASC"],
                page_token=token,
            )
            found += [found_run(run) for run in page if run.data.tags.get(schema.STUDY) == study]
            token = page.token
            if not token:
                return found

    def _bring(self, run: MirroredRun) -> Change:
        """Make one run in MLflow equal to `run` with as few calls as it takes."""
        tags = dict(run.tags)
        if run.key != _STUDY_KEY:
            tags[schema.PARENT] = self._parent_id
        found = self._runs.get(run.key)
        if found is None:
            self._create(run, tags)
            return "created"
        if found.is_equal_to(run, tags):
            return "unchanged"
        if found.must_be_replaced_by(run):
            self._client.delete_run(found.run_id)
            self._create(run, tags)
        else:
            self._correct(run, tags, found)
        return "updated"

    def _create(self, run: MirroredRun, tags: dict[str, str]) -> None:
        # Tags alone are written by the creation itself, whole or not at all, so the digest may go with them.
        first = {**tags, schema.MIRRORED: run.digest} if run.is_bare else tags
        created = self._client.create_run(self._experiment_id, start_time=run.start_ms, tags=first, run_name=run.name)
        run_id = str(created.info.run_id)
        if not run.is_bare:
            self._upload(run_id, run)
            self._log(run_id, run, {}, with_fixed=True)
        self._finish(run_id, run, tags, is_ended=run.end_ms is None)

    def _correct(self, run: MirroredRun, tags: dict[str, str], found: FoundRun | SealedRun) -> None:
        has_fixed, has_artifacts = found.has_part_of(run)
        for name in found.tags:
            if schema.is_owned_tag(name) and name not in tags:
                self._client.delete_tag(found.run_id, name)
        if not has_artifacts:
            self._upload(found.run_id, run)
        changed = {name: value for name, value in tags.items() if found.tags.get(name) != value}
        self._log(found.run_id, run, changed, with_fixed=not (has_fixed and found.has_params_of(run)))
        self._finish(found.run_id, run, tags, is_ended=found.has_end_of(run))

    def _upload(self, run_id: str, run: MirroredRun) -> None:
        with tempfile.TemporaryDirectory(prefix="mirror-") as folder:
            if stage(run, Path(folder), self._max_file_bytes):
                log_artifacts(self._client, run_id, folder)

    def _log(self, run_id: str, run: MirroredRun, tags: Mapping[str, str], *, with_fixed: bool) -> None:
        log_batch(
            self._client,
            run_id,
            params=run.params if with_fixed else {},
            metrics=[(point.name, point.value, point.step) for point in run.metrics] if with_fixed else [],
            timestamp_ms=run.end_ms or run.start_ms,
            tags={**tags, schema.MIRRORED: run.digest},  # the digest last: it says that all before it is there
        )

    def _finish(self, run_id: str, run: MirroredRun, tags: dict[str, str], *, is_ended: bool) -> None:
        if run.end_ms is not None and not is_ended:
            self._client.set_terminated(run_id, status=run.status, end_time=run.end_ms)
        elif not is_ended:
            self._client.update_run(run_id, status="RUNNING")
        self._runs[run.key] = kept_run(written_run(run_id, run, {**tags, schema.MIRRORED: run.digest}))
        if run.key == _STUDY_KEY:
            self._parent_id = run_id

    def _remove(self, keys: Iterable[str]) -> int:
        removed = [self._runs.pop(key) for key in keys]
        for found in removed:
            self._client.delete_run(found.run_id)
        return len(removed)
