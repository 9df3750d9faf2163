"""Contradictions: a rung said one thing of an assignment, and a dearer rung another.

It failed below and passed above where somebody looked: once that is no chance, what the lower rung refuses for that
reason is not believed on this node. Or it passed below and failed above, for a reason and in a phase that the lower
rung claims to find: then the lower rung misses some of them. What it does refuse is as true as before, so that one
failure which came late takes no dead end away; but it is not worth asking whether it would show such a failure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agent.deadends.claims import claims, reaches, visible_at
from agent.deadends.observation import trial_label
from agent.reasons import Policy, Reason
from agent.store.trial import Trial
from runners import Frozen, Rung
from search_spaces import SearchSpace

Weightless = frozenset[tuple[Rung, Reason]]
"""(rung, reason) of refusals that are not believed, or of failures that a rung misses."""
LOWER = (Rung.RESOLVE, Rung.PROBE, Rung.DUMMY)
SEES_ALL = (Rung.RESOLVE, Rung.DUMMY)
"""Rungs whose pass a failing launch can contradict. A probe sees a part: what it does not see may be the cause."""


class Contradiction(Frozen):
    """Two rungs that disagree about an assignment."""

    rung: Rung
    """The lower one, whose claim is at stake."""
    reason: Reason
    below: str
    """Label of the trial at the lower rung."""
    above: str
    """Label of the trial at the dearer rung."""
    above_rung: Rung
    passed_below: bool
    """True where it passed at the lower rung and failed above; False for the other way round."""
    is_certain: bool
    """Whether it is no chance: the reason is one that always repeats, or the failure was seen twice."""

    def __str__(self) -> str:
        ways = ("failed", "passed") if not self.passed_below else ("passed", "failed")
        certainly = "it misses such failures" if self.passed_below else "what it refuses for that is not believed"
        weight = certainly if self.is_certain else "it may be chance"
        return (
            f"{self.reason.value}: {ways[0]} at the {self.rung.value} rung ({self.below}), "
            f"{ways[1]} at the {self.above_rung.value} rung ({self.above}); {weight}"
        )


@dataclass
class Ledger:
    """What every rung said of every assignment. Only grows."""

    space: SearchSpace
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _passed: set[Rung] = field(default_factory=set)
    """Rungs at which something passed."""
    _below: dict[tuple[Rung, tuple[str, ...]], list[Trial]] = field(default_factory=lambda: defaultdict(list))
    _above: dict[tuple[Rung, tuple[str, ...]], list[Trial]] = field(default_factory=lambda: defaultdict(list))
    _found: dict[tuple[Rung, tuple[str, ...]], tuple[Contradiction, ...]] = field(default_factory=dict)
    contradictions: tuple[Contradiction, ...] = ()
    """All of them, by the lower rung and the trial there: in the same order, whichever trial closed first."""

    def __post_init__(self) -> None:
        self._names = {rung: visible_at(rung, self.space) for rung in LOWER}

    def take(self, trials: Iterable[Trial]) -> None:
        """Take in closed trials; those that were taken before change nothing."""
        if self._take(trials):
            self.contradictions = tuple(sorted((each for found in self._found.values() for each in found), key=_order))

    def _take(self, trials: Iterable[Trial]) -> bool:
        is_new = False
        for trial in trials:
            if (trial.study, trial.number) in self._seen or not trial.counts:
                continue
            self._seen.add((trial.study, trial.number))
            if trial.is_measured:
                self._passed.add(trial.work.rung)
            for rung in LOWER:
                is_above = trial.work.rung is not rung and reaches(trial.work.rung, rung)
                if trial.work.rung is not rung and not is_above:
                    continue
                key = (rung, tuple(repr(trial.work.resolved[name]) for name in self._names[rung]))
                (self._above if is_above else self._below)[key].append(trial)
                if key in self._below and key in self._above:
                    found = tuple(_between(rung, self._below[key], self._above[key]))
                    is_new |= found != self._found.get(key, ())
                    self._found[key] = found
        return is_new

    @property
    def weightless(self) -> Weightless:
        """The failures that are not believed: contradicted ones, and all of a rung at which nothing passed yet."""
        unproven = {(rung, reason) for rung in SEES_ALL if rung not in self._passed for reason in Reason}
        return self._certain(passed_below=False) | unproven

    @property
    def missed(self) -> Weightless:
        """The failures that a rung claims to find and does not."""
        return self._certain(passed_below=True)

    def _certain(self, *, passed_below: bool) -> Weightless:
        found = (each for each in self.contradictions if each.is_certain and each.passed_below is passed_below)
        return frozenset((each.rung, each.reason) for each in found)


def _order(found: Contradiction) -> tuple[Rung, int, str, int, str, Reason]:
    return found.rung, len(found.below), found.below, len(found.above), found.above, found.reason


def _between(rung: Rung, below: list[Trial], above: list[Trial]) -> Iterator[Contradiction]:
    """Yield one contradiction for each reason and direction."""
    if rung in SEES_ALL and (passed := _first_pass(below)) is not None and not _first_pass(above):
        for failed, is_certain in _failures(above):
            failure = failed.outcome.failure if failed.outcome else None
            if failure is not None and claims(rung, failure):
                yield _contradiction(rung, failure.reason, passed, failed, is_certain, passed_below=True)
    if (passed := _first_pass(above)) is not None and not _first_pass(below):
        for failed, is_certain in _failures(below):
            failure = failed.outcome.failure if failed.outcome else None
            if failure is not None:
                yield _contradiction(rung, failure.reason, failed, passed, is_certain, passed_below=False)


def _contradiction(
    rung: Rung, reason: Reason, below: Trial, above: Trial, is_certain: bool, *, passed_below: bool
) -> Contradiction:
    return Contradiction(
        rung=rung,
        reason=reason,
        below=trial_label(below),
        above=trial_label(above),
        above_rung=above.work.rung,
        passed_below=passed_below,
        is_certain=is_certain,
    )


def _first_pass(trials: list[Trial]) -> Trial | None:
    return next((trial for trial in trials if trial.is_measured), None)


def _failures(trials: list[Trial]) -> Iterator[tuple[Trial, bool]]:
    """Yield the first failure of each reason, and whether that reason is no chance here."""
    found: dict[Reason, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.outcome is not None and trial.is_failed and trial.outcome.failure is not None:
            found[trial.outcome.failure.reason].append(trial)
    for group in found.values():
        failure = group[0].outcome.failure if group[0].outcome else None
        repeats = failure is not None and failure.policy is Policy.DEAD_AT_ONCE
        yield group[0], repeats or len(group) > 1
