"""Everything seen so far, kept as bits: which passes and which failures satisfy which condition.

A hypothesis is a conjunction of conditions; whether any pass speaks against it, and how many failures speak for it, is
then a few operations on integers, however long the study is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from agent.deadends.claims import RUNG_ORDER, reaches
from agent.deadends.lexicon import Lexicon
from agent.deadends.observation import Observation
from agent.deadends.phases import PHASE_ORDER
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Phase, Rung
from search_spaces import SearchSpace, assignment_key


@dataclass(frozen=True, slots=True)
class Failed:
    """An observation together with its failure, so that neither is optional."""

    seen: Observation
    failure: Failure
    index: int = field(compare=False)
    """Its bit among the failures of its reason."""
    conditions: tuple[tuple[int, ...], ...]
    """For each visible parameter, the numbers of the conditions that its value satisfies."""
    order: tuple[int, int, str, str]
    """Sort key that does not depend on when it was seen: evidence that names its cause comes first."""

    @property
    def blames(self) -> frozenset[str]:
        """The visible parameters that the message accuses."""
        return frozenset(self.failure.blames).intersection(self.seen.visible)


@dataclass
class ReasonEvidence:
    """The failures of one reason."""

    failures: list[Failed] = field(default_factory=list)
    satisfying: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Condition number → bits of the failures that satisfy it."""
    blaming: dict[frozenset[str], int] = field(default_factory=lambda: defaultdict(int))
    """Blamed parameters → bits of the failures whose message accuses just these."""
    at_rung: dict[Rung, int] = field(default_factory=lambda: defaultdict(int))
    """Rung → bits of the failures seen there."""
    flaky: dict[int, list[Observation]] = field(default_factory=dict)
    """Failures whose very same launch also passed, with those passes."""
    _last_phase: tuple[tuple[int, int], Phase] | None = None

    @property
    def steady(self) -> int:
        """Bits of the failures that are not known to be flaky."""
        return ((1 << len(self.failures)) - 1) & ~sum(1 << index for index in self.flaky)

    @property
    def last_phase(self) -> Phase:
        """The latest phase in which a failure of the reason struck: what came further did not have its cause."""
        state = (len(self.failures), len(self.flaky))
        if self._last_phase is None or self._last_phase[0] != state:
            phases = (failed.failure.phase for failed in self.failures if failed.index not in self.flaky)
            self._last_phase = (state, max(phases, key=PHASE_ORDER.__getitem__, default=Phase.STOP))
        return self._last_phase[1]

    def alike(self, failed: Failed) -> int:
        """Return the bits of the failures that may have the same cause: a message with other blames has another one."""
        if not failed.blames:
            return (1 << len(self.failures)) - 1
        return self.blaming[failed.blames] | self.blaming[frozenset()]


class Evidence:
    """Passes and failures of a study. Only grows."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.lexicon = Lexicon(space)
        self.reasons: dict[Reason, ReasonEvidence] = {}
        self.passes: list[Observation] = []
        self._satisfying: dict[Rung, dict[int, int]] = {rung: defaultdict(int) for rung in Rung}
        self.survivors: list[Observation] = []
        """Failures that came further than some phase: they passed what strikes there."""
        self._surviving: dict[tuple[Rung, Phase], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._num_survivors: dict[Phase, int] = defaultdict(int)
        self._launches: dict[tuple[Rung, str], tuple[list[Observation], list[Failed]]] = {}

    def add(self, seen: Observation) -> None:
        """Take in one closed trial."""
        launch = (seen.rung, assignment_key(seen.assignment))
        passed, failed = self._launches.setdefault(launch, ([], []))
        if seen.failure is None:
            self._add_pass(seen)
            passed.append(seen)
        else:
            failed.append(self._add_failure(seen, seen.failure))
        if passed and failed:
            for each in failed:
                self.reasons[each.failure.reason].flaky[each.index] = list(passed)

    def against(self, conditions: tuple[int, ...], rung: Rung, reason: Reason) -> bool:
        """Return whether anything that satisfies all conditions passed, at this rung or above it.

        A launch that failed for another reason in a later phase passed what this reason strikes.
        """
        if _all(conditions, self._satisfying[rung]):
            return True
        return bool(_all(conditions, self._surviving[rung, self.reasons[reason].last_phase]))

    def reached(self, reason: Reason) -> int:
        """Return how many launches came as far as the failures of a reason, those not counted."""
        return len(self.passes) + self._num_survivors[self.reasons[reason].last_phase]

    def contradicting(self, conditions: tuple[int, ...], rung: Rung) -> list[Observation]:
        """Return the passes at this rung or above it that satisfy all conditions, oldest first."""
        bits = _all(conditions, self._satisfying[rung])
        found = (seen for index, seen in enumerate(self.passes) if bits >> index & 1)
        return sorted(found, key=lambda seen: seen.moment)

    def supporting(self, conditions: tuple[int, ...], reason: Reason) -> int:
        """Return the bits of the failures of a reason that satisfy all conditions, and that these may have caused.

        Where the conditions hold and a rung passed, a failure at that rung or below it had another cause.
        """
        evidence = self.reasons[reason]
        bits = _all(conditions, evidence.satisfying)
        for rung, seen_there in evidence.at_rung.items():
            if bits & seen_there and self.against(conditions, rung, reason):
                bits &= ~seen_there
        return bits

    def _add_pass(self, seen: Observation) -> None:
        bit = 1 << len(self.passes)
        self.passes.append(seen)
        numbers = [number for group in self._conditions(seen) for number in group]
        for rung in Rung:
            if reaches(seen.rung, rung):
                satisfying = self._satisfying[rung]
                for number in numbers:
                    satisfying[number] |= bit

    def _add_failure(self, seen: Observation, failure: Failure) -> Failed:
        evidence = self.reasons.setdefault(failure.reason, ReasonEvidence())
        failed = Failed(seen, failure, len(evidence.failures), self._conditions(seen), _order(seen, failure))
        evidence.failures.append(failed)
        evidence.blaming[failed.blames] |= 1 << failed.index
        evidence.at_rung[seen.rung] |= 1 << failed.index
        for group in failed.conditions:
            for number in group:
                evidence.satisfying[number] |= 1 << failed.index
        self._add_survivor(failed)
        return failed

    def _add_survivor(self, failed: Failed) -> None:
        bit = 1 << len(self.survivors)
        self.survivors.append(failed.seen)
        rungs = [rung for rung in Rung if reaches(failed.seen.rung, rung)]
        earlier = [phase for phase in Phase if PHASE_ORDER[phase] < PHASE_ORDER[failed.failure.phase]]
        for phase in earlier:
            self._num_survivors[phase] += 1
        for satisfying in (self._surviving[rung, phase] for rung in rungs for phase in earlier):
            for group in failed.conditions:
                for number in group:
                    satisfying[number] |= bit

    def _conditions(self, seen: Observation) -> tuple[tuple[int, ...], ...]:
        return tuple(self.lexicon.satisfied(name, seen.assignment[name]) for name in seen.visible)


def _order(seen: Observation, failure: Failure) -> tuple[int, int, str, str]:
    blames = sorted(set(failure.blames).intersection(seen.visible))
    return -len(failure.blames), RUNG_ORDER[seen.rung], assignment_key(seen.assignment), ",".join(blames)


def _all(conditions: tuple[int, ...], satisfying: dict[int, int]) -> int:
    bits = -1
    for number in conditions:
        bits &= satisfying.get(number, 0)
    return bits if conditions else 0
