"""Node time that a study did not spend: spared by the map, by the cheaper rungs, and by loads that ended early.

A launch that was not made is reckoned with what failing ones take: the median of this study's launches that failed for
the same reason, or, where none did, the usual time of a launch up to the end of the phase in which it would have died.
A launch that hangs takes longer than that, so what is unknown is rather reckoned too low.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.deadends.dead_end import DeadEnd
from agent.deadends.phases import PHASE_ORDER
from agent.outcome import Failure
from agent.progress import spoken
from agent.propose.history import History
from agent.reasons import Reason
from agent.savings import Counts
from agent.store.trial import Trial, trial_label
from runners import Phase, Rung, RunRecord

UP = Phase.READY
"""How far a launch is taken to come of which nobody knows where it would fail."""


@dataclass(frozen=True, slots=True)
class Spared:
    """What one rung below the top spared. Times in seconds of the node."""

    rung: Rung
    launches: int
    """Launches that were due, were shown here to fail, and were not made."""
    launches_s: float
    """What they would have taken."""
    checks_s: float
    """What all questions took that launches were held up for: those that passed too."""
    found: int
    """Further assignments that were shown here to fail, though no launch of theirs was due."""
    found_s: float
    """What they would have taken as launches; never made, so nothing is saved."""

    @property
    def saved_s(self) -> float:
        """What is left of what was spared; negative where the questions cost more."""
        return self.launches_s - self.checks_s


@dataclass(frozen=True, slots=True)
class Saved:
    """What was not spent. Times in seconds of the node."""

    ruled_out: Mapping[str, int]
    """Rung → candidates that the map ruled out there, which the search preferred to what it ran."""
    map_s: float
    """What these would have taken."""
    ladder: tuple[Spared, ...] = ()
    """One for each rung below the top at which something ran, cheapest first."""
    early: int = 0
    """Loads that ended early."""
    early_s: float = 0.0
    """What the rest of them would have taken."""

    @property
    def ladder_s(self) -> float:
        """What the rungs below the top saved, less what they cost."""
        return sum(each.saved_s for each in self.ladder)

    @property
    def num_spared(self) -> int:
        """Launches that a cheaper rung spared."""
        return sum(each.launches for each in self.ladder)

    def words(self) -> str:
        """Return what was saved in one line, empty where nothing was."""
        parts = []
        if self.ruled_out:
            parts.append(f"{spoken(self.map_s)} by the map")
        if self.num_spared:
            parts.append(f"{_signed(self.ladder_s)} by cheaper rungs ({plural(self.num_spared, 'launch', 'launches')})")
        if self.early:
            parts.append(f"{spoken(self.early_s)} by ending loads early")
        return f"node time saved, estimated: {', '.join(parts)}" if parts else ""


class FailureTimes:
    """How long trials take that fail, as a study's own trials tell."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._by_reason: dict[tuple[Rung, Reason], list[float]] = defaultdict(list)
        self._at: dict[Rung, list[float]] = defaultdict(list)
        self._phases: dict[Phase, list[float]] = defaultdict(list)
        self._phase_of: dict[str, Phase] = {}
        for trial in trials:
            if trial.record is not None and trial.outcome is not None:
                self._note(trial, trial.record, trial.outcome.failure)

    def _note(self, trial: Trial, record: RunRecord, failure: Failure | None) -> None:
        rung = trial.work.rung
        if trial.is_failed and failure is not None:
            self._by_reason[rung, failure.reason].append(record.wall_s)
            self._phase_of[trial_label(trial)] = failure.phase
        if trial.is_failed or trial.is_measured:
            self._at[rung].append(record.wall_s)
        if trial.is_measured and rung is Rung.FULL:
            for phase, seconds in record.phase_s.items():
                self._phases[phase].append(seconds)

    def seconds(self, rung: Rung, reason: Reason, phase: Phase | None) -> float:
        """Return how long a trial takes at a rung that fails like this, in seconds.

        Args:
            rung: Where it would run.
            reason: What it would fail for.
            phase: Where it would die, or None: nobody knows.
        """
        if seen := self._by_reason.get((rung, reason)):
            return statistics.median(seen)
        if rung is not Rung.FULL:
            return statistics.median(self._at[rung]) if self._at.get(rung) else 0.0
        last = PHASE_ORDER[min(phase or UP, UP, key=PHASE_ORDER.__getitem__)]
        return sum(statistics.median(each) for at, each in self._phases.items() if PHASE_ORDER[at] <= last)

    def phase_of(self, labels: Sequence[str]) -> Phase | None:
        """Return the phase in which the first of these trials failed, or None: none of them is of this study."""
        return next((self._phase_of[label] for label in labels if label in self._phase_of), None)


def times_of(history: History) -> FailureTimes:
    """Return how long this study's failures take."""
    return FailureTimes((*history.trials, *history.probes, *history.checks))


def map_saved_s(found: DeadEnd, ruled_out: Mapping[str, int], times: FailureTimes) -> float:
    """Return the node time of the candidates that a dead end ruled out, in seconds.

    Args:
        found: The dead end.
        ruled_out: Rung → how many it ruled out there.
        times: How long failures take in this study.
    """
    phase = times.phase_of(found.support)
    return sum(number * times.seconds(Rung(rung), found.reason, phase) for rung, number in ruled_out.items())


def saved_in(history: History, counts: Counts) -> Saved:
    """Return what a study did not spend.

    Args:
        history: The study.
        counts: What each dead end ruled out.
    """
    times, early = times_of(history), [trial for trial in history.trials if trial.is_slower]
    ruled_out: Counter[str] = Counter()
    for found in history.atlas.dead_ends:
        ruled_out.update(counts.get(found.id, {}))
    return Saved(
        ruled_out=dict(ruled_out),
        map_s=sum(map_saved_s(each, counts.get(each.id, {}), times) for each in history.atlas.dead_ends),
        ladder=_ladder(history, times) if Rung.FULL in history.rungs else (),
        early=len(early),
        early_s=sum(trial.saved_s for trial in early),
    )


def _ladder(history: History, times: FailureTimes) -> tuple[Spared, ...]:
    """Return what each rung below the top spared; an assignment counts at the cheapest rung that closed it."""
    told = {trial.work.key for trial in history.launches}
    below, found = (*history.probes, *history.checks), list[Spared]()
    for rung in Rung:
        here = [trial for trial in below if trial.work.rung is rung and trial.counts]
        open_ = told | {trial.work.key for trial in here if trial.is_measured}
        failed = [each for each in here if _is_believed(each, history) and each.work.key not in open_]
        due = {trial.work.key: trial for trial in failed if trial.work.climbs}
        others = {trial.work.key: trial for trial in failed if trial.work.key not in due}
        told |= {*due, *others}
        if here:
            found.append(
                Spared(
                    rung=rung,
                    launches=len(due),
                    launches_s=sum(_as_launch_s(trial, times) for trial in due.values()),
                    checks_s=sum(trial.record.wall_s for trial in here if trial.work.climbs and trial.record),
                    found=len(others),
                    found_s=sum(_as_launch_s(trial, times) for trial in others.values()),
                )
            )
    return tuple(found)


def _is_believed(trial: Trial, history: History) -> bool:
    """Return whether a failure below the top closed its assignment: no dearer rung has contradicted such a one."""
    failure = trial.outcome.failure if trial.outcome else None
    return failure is not None and (trial.work.rung, failure.reason) not in history.atlas.weightless


def _as_launch_s(trial: Trial, times: FailureTimes) -> float:
    """Return what the launch of an assignment would have taken that a cheaper rung closed."""
    failure = trial.outcome.failure if trial.outcome else None
    if failure is None:
        return 0.0
    # A launch resolves its arguments only once it has imported everything: while it is spawned.
    phase = max(failure.phase, Phase.SPAWN, key=PHASE_ORDER.__getitem__)
    return times.seconds(Rung.FULL, failure.reason, phase)


NOTHING = Saved({}, 0.0)
"""Nothing was saved."""


def _signed(seconds: float) -> str:
    return f"-{spoken(-seconds)}" if seconds < 0 else spoken(seconds)


def plural(number: int, one: str, more: str) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else more}"
