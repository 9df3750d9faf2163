"""What goes into the mirror (a study as stored), and what its pure half makes of it (runs as they should be)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal

from agent.store.trial import Trial

StudyStatus = Literal["running", "finished", "interrupted"]
RunStatus = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, kw_only=True)
class StudySnapshot:
    """A study as the storage has it at one moment: all that the mirror needs to rebuild MLflow from nothing."""

    study: str
    spec: Mapping[str, object]
    """The study's specification, as JSON."""
    facts: Mapping[str, object]
    """Environment fingerprint of the node."""
    trials: tuple[Trial, ...]
    probes: tuple[Trial, ...] = ()
    """Trials of the companion study: they become one table, not runs."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """File name → text: the dead-end map (JSON, Markdown, HTML) and the report."""
    dead_ends: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Number of a trial → ids of the dead ends it supports."""
    best: int | None = None
    """Number of the best trial."""
    gain: float | None = None
    """Objective of the best assignment divided by the baseline's: 1.25 is 25 % more."""
    interval: tuple[float, float] | None = None
    """Ends of the interval of that ratio."""
    verdict: str = ""
    """`gain`, `no gain` or `not separable within the budget`; empty while the study runs."""
    status: StudyStatus
    started_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of a metric; what `step` means depends on the metric."""

    name: str
    value: float
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class MirroredRun:
    """One MLflow run as it should be. Equal content has an equal digest, wherever and whenever it is made."""

    key: str
    """Number of the trial as text; empty for the run of the study itself."""
    name: str
    status: RunStatus
    start_ms: int
    end_ms: int | None
    """Milliseconds since 1970, from the storage; None while running."""
    tags: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[MetricPoint, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """Artifact path → content."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Artifact path → file to copy, if it is still there. The source is not in the digest: state may be moved."""
    secrets: frozenset[str] = frozenset()
    """Values to be masked in the copied files; never stored."""

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the whole run, then that of the part that MLflow cannot change, then that of the artifacts."""
        other = [self.key, self.status, dict(self.tags), self.fixed_digest, self.artifact_digest]
        return f"{_fingerprint(other)}.{self.fixed_digest}.{self.artifact_digest}"

    @cached_property
    def fixed_digest(self) -> str:
        """Fingerprint of what is final once logged: params, metrics, times."""
        metrics = [(point.name, point.value, point.step) for point in self.metrics]
        return _fingerprint([self.start_ms, self.end_ms, dict(self.params), metrics])

    @cached_property
    def artifact_digest(self) -> str:
        """Fingerprint of the artifacts: texts by content, files of a closed trial by name, since they are final."""
        return _fingerprint([dict(self.texts), sorted(self.files)])

    @property
    def is_bare(self) -> bool:
        """True when the run consists of tags alone, which creating it sets in one call."""
        return not (self.params or self.metrics or self.texts or self.files)


def _fingerprint(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
