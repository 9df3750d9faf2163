"""What the rungs below the top said of every assignment, as far as they are believed.

A rung is believed once something passed there: until then nobody knows whether it works at all. For a reason in which a
dearer rung contradicted it, it is not believed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agent.deadends.atlas import Atlas
from agent.deadends.claims import visible_at
from agent.deadends.observation import trial_label
from agent.store.trial import Trial
from runners import Rewrite, Rung
from search_spaces import Assignment, Scalar, SearchSpace, assignment_key, changed_parameters

Key = tuple[str, ...]


@dataclass(frozen=True)
class RungMemory:
    """The trials below the top, asked by what their rungs can see."""

    space: SearchSpace
    trials: tuple[Trial, ...]
    """Those of the companion study, in flight ones included."""
    atlas: Atlas

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
        return any(trial.is_measured for trial in self.trials if trial.work.rung is rung)

    def resolved(self, requested: Mapping[str, Scalar]) -> tuple[Assignment, tuple[Rewrite, ...]] | None:
        """Return what the engine makes of an assignment, and what it replaces; None where it was not asked.

        Of assignments that the engine resolves to the very same, all stand for the one that was asked first.
        """
        trial = self._resolved.get(assignment_key(requested))
        if trial is None:
            return None
        first = self._first.get(_fingerprint(trial), trial)
        if first is trial:
            return trial.work.resolved, ()
        ran, asked = first.work.resolved, trial.work.resolved
        why = f"the engine resolves it to the same as {trial_label(first)}"
        names = changed_parameters(asked, ran)
        return ran, tuple(Rewrite(parameter=n, requested=asked[n], resolved=ran[n], why=why) for n in names)

    def _is_believed(self, trial: Trial) -> bool:
        failure = trial.outcome.failure if trial.outcome else None
        return failure is not None and (trial.work.rung, failure.reason) not in self.atlas.weightless

    def _of(self, rung: Rung, point: Mapping[str, Scalar]) -> list[Trial]:
        return self._by_key.get((rung, self._key(rung, point)), [])

    def _key(self, rung: Rung, point: Mapping[str, Scalar]) -> Key:
        return tuple(repr(point[name]) for name in self._names[rung])

    @cached_property
    def _names(self) -> dict[Rung, tuple[str, ...]]:
        return {rung: visible_at(rung, self.space) for rung in Rung}

    @cached_property
    def _rungs(self) -> set[Rung]:
        return {trial.work.rung for trial in self.trials} - {Rung.PROBE}

    @cached_property
    def _by_key(self) -> dict[tuple[Rung, Key], list[Trial]]:
        found: dict[tuple[Rung, Key], list[Trial]] = defaultdict(list)
        for trial in self.trials:
            rung = trial.work.rung
            for key in {self._key(rung, trial.work.resolved), self._key(rung, trial.work.requested)}:
                found[rung, key].append(trial)
        return found

    @cached_property
    def _resolved(self) -> dict[str, Trial]:
        passed = (trial for trial in self.trials if trial.work.rung is Rung.RESOLVE and trial.is_measured)
        return {assignment_key(trial.work.requested): trial for trial in passed}

    @cached_property
    def _first(self) -> dict[str, Trial]:
        found: dict[str, Trial] = {}
        for trial in self._resolved.values():
            if key := _fingerprint(trial):
                found.setdefault(key, trial)
        return found


def _fingerprint(trial: Trial) -> str:
    return trial.record.shown.fingerprint if trial.record and trial.record.shown else ""
