"""A run as MLflow has it, against the run it should be: equal, to be corrected, or to be replaced. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.mirror import schema
from agent.mirror.snapshot import MirroredRun
from agent.mirror.study_run import launches_of


@dataclass(frozen=True, kw_only=True)
class FoundRun:
    """A run as MLflow has it."""

    run_id: str
    status: str
    end_ms: int | None
    tags: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: frozenset[str] = frozenset()
    """Names of its metrics."""

    @property
    def key(self) -> str:
        """Number of the trial as text; empty for the run of the study itself."""
        return self.tags.get(schema.TRIAL, "")

    @property
    def is_sealed(self) -> bool:
        """True when the run was once written to its end."""
        return schema.MIRRORED in self.tags

    def has_part_of(self, run: MirroredRun) -> tuple[bool, bool]:
        """Return whether the params and metrics, and whether the artifacts, are those of `run` already."""
        _, fixed, artifacts, *_ = [*self.tags.get(schema.MIRRORED, "").split("."), "", ""]
        return fixed == run.fixed_digest, artifacts == run.artifact_digest

    def has_params_of(self, run: MirroredRun) -> bool:
        """Return whether its params are those of `run`."""
        return self.params == run.params

    def has_end_of(self, run: MirroredRun) -> bool:
        """Return whether status and end are those of `run` already."""
        return self.status == run.status and (run.end_ms is None or self.end_ms == run.end_ms)

    def is_equal_to(self, run: MirroredRun, tags: Mapping[str, str]) -> bool:
        """Return whether nothing has to be written: the digest, and everything that the search returned with it."""
        if self.tags.get(schema.MIRRORED) != run.digest or not self.has_end_of(run):
            return False
        if run.end_ms is not None and self.params != run.params:
            return False
        # The description may be edited in MLflow's view: it is rewritten only when the run's own content changes.
        return all(self.tags.get(name) == value for name, value in tags.items() if name != schema.NOTE)

    def must_be_replaced_by(self, run: MirroredRun) -> bool:
        """Return whether it holds a param or metric that should not be there: MLflow can change and remove neither."""
        if any(run.params.get(name, value) != value for name, value in self.params.items()):
            return True
        if run.status == "RUNNING":
            return False  # what an earlier end of the study logged may stay; the next end decides
        has_fixed, _ = self.has_part_of(run)
        has_other_metrics = bool(self.metrics) and not has_fixed and not self._is_earlier_end_of(run)
        return not self.params.keys() <= run.params.keys() or has_other_metrics

    def _is_earlier_end_of(self, run: MirroredRun) -> bool:
        """Return whether the metrics of `run` come after those found, as further points of the same metrics.

        So a study that was resumed keeps its run, and with it every link to it.
        """
        names = {point.name for point in run.metrics}
        return self.metrics <= names and launches_of(self.tags) < launches_of(run.tags)


@dataclass(frozen=True, slots=True)
class SealedRun:
    """The run of a closed trial that is written to its end: one of thousands, of which the digest is kept and no more.

    A tag that it has and should not have any more is seen by the next `sync`, which reads all of MLflow's.
    """

    run_id: str
    status: str
    end_ms: int | None
    digest: str

    @property
    def tags(self) -> Mapping[str, str]:
        """What is known of its tags."""
        return {schema.MIRRORED: self.digest}

    def has_part_of(self, run: MirroredRun) -> tuple[bool, bool]:
        """Return whether the params and metrics, and whether the artifacts, are those of `run` already."""
        _, fixed, artifacts = self.digest.split(".")
        return fixed == run.fixed_digest, artifacts == run.artifact_digest

    def has_params_of(self, run: MirroredRun) -> bool:
        """Return whether its params are those of `run`."""
        return self.has_part_of(run)[0]

    def has_end_of(self, run: MirroredRun) -> bool:
        """Return whether status and end are those of `run` already."""
        return self.status == run.status and self.end_ms == run.end_ms

    def is_equal_to(self, run: MirroredRun, tags: Mapping[str, str]) -> bool:
        """Return whether nothing has to be written; the tags are part of the digest."""
        return self.digest == run.digest and self.has_end_of(run)

    def must_be_replaced_by(self, run: MirroredRun) -> bool:
        """Return whether it holds other params or metrics: MLflow can change and remove neither."""
        return not self.has_params_of(run)


def kept_run(found: FoundRun) -> FoundRun | SealedRun:
    """Return what is kept of a run while a study goes on: of a trial's that is complete, only what tells it apart."""
    digest = found.tags.get(schema.MIRRORED, "")
    if not found.key or found.end_ms is None or digest.count(".") != 2:
        return found
    return SealedRun(found.run_id, found.status, found.end_ms, digest)


def found_run(run: Any) -> FoundRun:
    """Return MLflow's entity as ours."""
    return FoundRun(
        run_id=run.info.run_id,
        status=run.info.status,
        end_ms=run.info.end_time,
        tags=run.data.tags,
        params=run.data.params,
        metrics=frozenset(run.data.metrics),
    )


def written_run(run_id: str, run: MirroredRun, tags: Mapping[str, str]) -> FoundRun:
    """Return what MLflow has after `run` was written."""
    return FoundRun(
        run_id=run_id,
        status=run.status,
        end_ms=run.end_ms,
        tags=tags,
        params=run.params,
        metrics=frozenset(point.name for point in run.metrics),
    )


def keep_best(runs: list[FoundRun]) -> tuple[dict[str, FoundRun], list[FoundRun]]:
    """Return one run a trial, by key, and the spare ones: a sealed copy beats a half-written one, then the older."""
    kept: dict[str, FoundRun] = {}
    for run in sorted(runs, key=lambda run: not run.is_sealed):
        kept.setdefault(run.key, run)
    chosen = {run.run_id for run in kept.values()}
    return kept, [run for run in runs if run.run_id not in chosen]
