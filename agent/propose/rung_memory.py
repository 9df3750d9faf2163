"""What the rungs below the top said of every assignment, as far as they are believed.

A rung is believed once something passed there: until then nobody knows whether it works at all. For a reason in which a
dearer rung contradicted it, it is not believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from agent.deadends.atlas import Atlas
from agent.deadends.claims import visible_at
from agent.deadends.observation import trial_label
from agent.propose.memo import Memo
from agent.store.trial import Trial
from runners import Rewrite, Rung
from search_spaces import Assignment, Scalar, SearchSpace, assignment_key, changed_parameters

Key = tuple[str, ...]


@dataclass(frozen=True)
class RungMemory:
    """The trials below the top, asked by what their rungs can see."""

    space: SearchSpace
    probes: tuple[Trial, ...]
    """Of the companion study, in flight ones included, those at the probe rung."""
    checks: tuple[Trial, ...]
    """Those at the other rungs."""
    atlas: Atlas
    memo: Memo = field(default_factory=Memo, compare=False)

    def passed(self, rung: Rung, point: Mapping[str, Scalar]) -> bool:
        """Return whether what the rung sees of the assignment passed there."""
        return any(trial.is_measured for trial in self._of(rung, point))

    def was_asked(self, rung: Rung, point: Mapping[str, Scalar]) -> bool:
        """Return whether the rung has answered, or is being asked."""
        return any(trial.counts or not trial.is_closed for trial in self._of(rung, point))

    def is_asked(self, point: Mapping[str, Scalar]) -> bool:
        """Return whether a rung that measures nothing is being asked about the assignment."""
        return any(not trial.is_closed for rung in self._rungs for trial in self._of(rung, point))

    def failed(self, rung: Rung, point: Mapping[str, Scalar]) -> Trial | None:
        """Return the failure for which the work is closed at a rung, or None."""
        trials = self._of(rung, point)
        if any(trial.is_measured for trial in trials):
            return None
        return next((trial for trial in trials if trial.is_failed and self._is_believed(trial)), None)

    def is_trusted(self, rung: Rung) -> bool:
        """Return whether anything passed at a rung."""
        return rung in self._trusted

    def resolved(self, requested: Mapping[str, Scalar], key: str = "") -> tuple[Assignment, tuple[Rewrite, ...]] | None:
        """Return what the engine makes of an assignment, and what it replaces; None where it was not asked.

        Of assignments that the engine resolves to the very same, all stand for the one that was asked first.

        Args:
            requested: The assignment.
            key: Its key, where it is at hand.
        """
        trial = self._resolved.get(key or assignment_key(requested)) if self._resolved else None
        if trial is None:
            return None
        first = self._first.get(_fingerprint(trial), trial)
        if first is trial:
            return trial.work.resolved, ()
        ran, asked = first.work.resolved, trial.work.resolved
        why = f"the engine resolves it to the same as {trial_label(first)}"
        names = changed_parameters(asked, ran)
        return ran, tuple(Rewrite(parameter=n, requested=asked[n], resolved=ran[n], why=why) for n in names)

    def is_resolved(self, key: str) -> bool:
        """Return whether the engine was asked what it makes of an assignment, given by its key."""
        return key in self._resolved

    def _is_believed(self, trial: Trial) -> bool:
        failure = trial.outcome.failure if trial.outcome else None
        return failure is not None and (trial.work.rung, failure.reason) not in self.atlas.weightless

    def _of(self, rung: Rung, point: Mapping[str, Scalar]) -> list[Trial]:
        return self._by_key[0 if rung is Rung.PROBE else 1].get((rung, self._key(rung, point)), [])

    def _key(self, rung: Rung, point: Mapping[str, Scalar]) -> Key:
        return tuple(repr(point[name]) for name in self._names[rung])

    @cached_property
    def _names(self) -> dict[Rung, tuple[str, ...]]:
        return {rung: visible_at(rung, self.space) for rung in Rung}

    @cached_property
    def _rungs(self) -> set[Rung]:
        return self.memo.fold("rungs below", self.checks, set, lambda found, trial: found.add(trial.work.rung))

    @cached_property
    def _trusted(self) -> set[Rung]:
        def add(found: set[Rung], trial: Trial) -> None:
            if trial.is_measured:
                found.add(trial.work.rung)

        return self.memo.fold("trusted probe", self.probes, set, add) | self.memo.fold("trusted", self.checks, set, add)

    @cached_property
    def _by_key(self) -> list[dict[tuple[Rung, Key], list[Trial]]]:
        """The trials by what their rung could see, as asked and as ran: probes, and the others."""

        def add(found: dict[tuple[Rung, Key], list[Trial]], trial: Trial) -> None:
            rung = trial.work.rung
            for key in {self._key(rung, trial.work.resolved), self._key(rung, trial.work.requested)}:
                found[rung, key] = [*found.get((rung, key), ()), trial]

        parts = {"probes": self.probes, "checks": self.checks}
        return [self.memo.fold(f"by key {name}", part, dict, add) for name, part in parts.items()]

    @cached_property
    def _resolved(self) -> dict[str, Trial]:
        return self.memo.fold("resolved", self.checks, dict, _add_resolved)

    @cached_property
    def _first(self) -> dict[str, Trial]:
        """Fingerprint → the trial of the assignment that was asked first."""
        first: dict[str, Trial] = self.memo.fold("first resolved", self.checks, dict, _add_first)
        if self.memo.fold("num resolved", self.checks, Counter, _count_resolved)[True] == len(self._resolved):
            return first
        again: dict[str, Trial] = {}  # one was asked twice: what it resolves to now counts
        for trial in self._resolved.values():
            if name := _fingerprint(trial):
                again.setdefault(name, trial)
        return again


def _add_resolved(found: dict[str, Trial], trial: Trial) -> None:
    if trial.work.rung is Rung.RESOLVE and trial.is_measured:
        found[assignment_key(trial.work.requested)] = trial


def _add_first(found: dict[str, Trial], trial: Trial) -> None:
    if trial.work.rung is Rung.RESOLVE and trial.is_measured and (name := _fingerprint(trial)):
        found.setdefault(name, trial)


def _count_resolved(found: Counter[bool], trial: Trial) -> None:
    found[trial.work.rung is Rung.RESOLVE and trial.is_measured] += 1


def _fingerprint(trial: Trial) -> str:
    return trial.record.shown.fingerprint if trial.record and trial.record.shown else ""
