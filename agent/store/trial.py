"""A trial as the store gives it back: what was asked, who runs it, and, once closed, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from agent.outcome import Outcome, OutcomeKind
from runners import Frozen, Rewrite, Rung, RunRecord
from search_spaces import Assignment, assignment_key


class Kind(StrEnum):
    """Why a trial is run. Part of its identity: a repeat of a closed trial is a piece of work of its own."""

    DEFAULT = "default"
    BASELINE = "baseline"
    SEARCH = "search"
    CONFIRM = "confirm"
    REPEAT = "repeat"
    PROBE = "probe"


class Lease(Frozen):
    """Who owns a running trial: enough to tell, later and from elsewhere, whether the owner is still alive."""

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started_ticks: int
    """Start time of the owner's process in clock ticks since boot (field 22 of /proc/PID/stat)."""


class Work(Frozen):
    """A piece of work before it runs. Its identity may be closed at most once."""

    kind: Kind
    rung: Rung
    requested: Assignment
    resolved: Assignment
    repeat: int = 0
    rewrites: tuple[Rewrite, ...] = ()
    stage: str = ""
    """Which step of the search order proposed it, in words for the reader."""
    base: Assignment | None = None
    """The known-good assignment it was changed from, where there is one."""
    about: str = ""
    """What an experiment is about: the reason of the failures it explores, the id of the dead end it checks again, or
    `escape of ID`; empty for everything else."""
    climbs: bool = False
    """True for what is asked of a cheaper rung on the way to a launch that is due; a tally for the reader."""

    @cached_property
    def key(self) -> str:
        """Return the key of the resolved assignment: equal for everything that measures the same launch."""
        return assignment_key(self.resolved)

    @cached_property
    def identity(self) -> str:
        """Return the key of (resolved assignment, kind, repeat index); for what runs below the top, of its rung too."""
        return self._identity_of(self.key)

    @cached_property
    def asked_identity(self) -> str:
        """Return the same of what was asked for: it differs where the engine ran something else."""
        return self._identity_of(assignment_key(self.requested))

    def _identity_of(self, key: str) -> str:
        kind = "first" if self.kind in FIRST_LAUNCHES else self.kind.value
        if self.kind is Kind.PROBE and self.rung is not Rung.PROBE:
            kind = self.rung.value
        return f"{key}/{kind}/{self.repeat}"

    def again(self, kind: Kind, repeat: int, stage: str, base: Assignment | None = None) -> Work:
        """Return another launch of the same assignment. (`model_copy` would keep the cached identity of this one.)"""
        return Work(
            kind=kind,
            rung=self.rung,
            requested=self.requested,
            resolved=self.resolved,
            repeat=repeat,
            rewrites=self.rewrites,
            stage=stage,
            base=base,
            climbs=self.climbs,
        )


FIRST_LAUNCHES = frozenset({Kind.DEFAULT, Kind.BASELINE, Kind.SEARCH})
"""Kinds that launch an assignment for the first time: they share one identity, so that none is launched as another."""


class Trial(Frozen):
    """One stored trial of a study or of its companion study of probes."""

    study: str
    number: int
    work: Work
    cookie: str
    lease: Lease | None
    started_at: datetime
    closed_at: datetime | None = None
    outcome: Outcome | None = None
    record: RunRecord | None = None
    artifact_dir: str = ""
    epoch: int = 0
    """Which of the study's environments it was launched in, counted from 0."""
    facts: Mapping[str, object] = {}
    """Facts of the node it ran on."""

    def closed(self, outcome: Outcome, record: RunRecord | None) -> Trial:
        """Return this trial with its evidence and end."""
        return self.model_copy(update={"outcome": outcome, "record": record, "closed_at": outcome.closed_at})

    @property
    def is_closed(self) -> bool:
        """True once the trial was told; a closed trial never changes."""
        return self.closed_at is not None

    @property
    def is_measured(self) -> bool:
        """True when the trial ran to its end and has a value."""
        return self.outcome is not None and self.outcome.kind is OutcomeKind.MEASURED

    @property
    def is_slower(self) -> bool:
        """True when the trial was stopped early: it works, and its value is only what a part of the load points to."""
        return self.outcome is not None and self.outcome.kind is OutcomeKind.SLOWER

    @property
    def saved_s(self) -> float:
        """Estimated time that the rest of its load would have taken, in seconds, where it was stopped early."""
        measurement = self.record.measurement if self.is_slower and self.record is not None else None
        return measurement.stopped.saved_s if measurement is not None and measurement.stopped is not None else 0.0

    @property
    def works(self) -> bool:
        """True when the launch came up and served: measured, or stopped early as clearly slower."""
        return self.is_measured or self.is_slower

    @property
    def is_failed(self) -> bool:
        """True when the trial failed with a classified reason."""
        return self.outcome is not None and self.outcome.kind is OutcomeKind.FAILED

    @property
    def is_not_probed(self) -> bool:
        """True when a probe could not look at it, so that only a launch can tell."""
        return self.outcome is not None and self.outcome.kind is OutcomeKind.NOT_PROBED

    @property
    def is_our_fault(self) -> bool:
        """True when the harness failed, as opposed to being stopped: such work is queued again only a few times."""
        return self.outcome is not None and self.outcome.kind is OutcomeKind.INTERRUPTED and bool(self.outcome.failure)

    @property
    def counts(self) -> bool:
        """True when the trial uses up budget: measured, failed or stopped early, but not interrupted."""
        return self.is_closed and self.outcome is not None and self.outcome.kind is not OutcomeKind.INTERRUPTED


def trial_label(trial: Trial) -> str:
    """Return the short name by which a trial is shown: `#12`, or `p12` for a probe."""
    return f"{'p' if trial.work.kind is Kind.PROBE else '#'}{trial.number}"
