"""Everything seen so far, kept as bits: which passes and which failures satisfy which condition.

A hypothesis is a conjunction of conditions; whether any pass speaks against it, and how many failures speak for it, is
then a few operations on integers, however long the study is.
"""

from __future__ import annotations

import bisect
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.deadends.bits import positions
from agent.deadends.claims import RUNG_ORDER as RUNG_ORDER
from agent.deadends.claims import reaches
from agent.deadends.implied import Implications
from agent.deadends.kept import Kept
from agent.deadends.lexicon import Lexicon
from agent.deadends.observation import Observation
from agent.deadends.phases import PHASE_ORDER as PHASE_ORDER
from agent.deadends.signature import signature_of, words_of
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Phase, Rung
from search_spaces import Assignment, Facts, Scalar, SearchSpace, assignment_key

Place = tuple[Rung, Phase, str]
"""Where a failure struck, and what it said."""


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
    signature: str
    """What the failure looks like: failures of one cause look alike."""
    blames: frozenset[str]
    """The visible parameters that the message accuses."""
    place: Place
    """Where it struck, and what it said."""
    draw: int = field(compare=False)
    """A number drawn for its assignment: failures with the least ones are a sample that hangs on no order."""


@dataclass
class ReasonEvidence:
    """The failures of one reason."""

    failures: list[Failed] = field(default_factory=list)
    ordered: list[Failed] = field(default_factory=list)
    """The same by their sort keys."""
    satisfying: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Condition number → bits of the failures that satisfy it."""
    blaming: dict[frozenset[str], int] = field(default_factory=lambda: defaultdict(int))
    """Blamed parameters → bits of the failures whose message accuses just these."""
    looking: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Signature → bits of the failures that look like this."""
    struck: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    """Place → bits of the failures that struck there and said that."""
    flaky: dict[int, list[Observation]] = field(default_factory=dict)
    """Failures whose very same launch also passed, with those passes."""
    survivors: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Words → bits of the survivors that failed for this reason and said that: what comes further and then says the
    same may still have its cause."""

    @property
    def steady(self) -> int:
        """Bits of the failures that are not known to be flaky."""
        return ((1 << len(self.failures)) - 1) & ~sum(1 << index for index in self.flaky)

    @property
    def num_flaky(self) -> int:
        """A number that grows with each of these launches, and each of their passes."""
        return len(self.flaky) + sum(map(len, self.flaky.values()))

    def at_rung(self, rung: Rung) -> int:
        """Return the bits of the failures seen at a rung."""
        return sum(bits for place, bits in self.struck.items() if place[0] is rung)

    def alike(self, failed: Failed) -> int:
        """Return the bits of the failures that may have the same cause: they look alike and blame nothing else."""
        bits = self.looking[failed.signature]
        return bits & (self.blaming[failed.blames] | self.blaming[frozenset()]) if failed.blames else bits


class Evidence:
    """Passes and failures of a study. Only grows."""

    def __init__(self, space: SearchSpace, facts: Facts) -> None:
        self.space = space
        self.lexicon = Lexicon(space)
        self.implications = Implications(space, facts, self.lexicon)
        self.reasons: dict[Reason, ReasonEvidence] = {}
        self.passes: list[Observation] = []
        self._satisfying: dict[Rung, dict[int, int]] = {rung: defaultdict(int) for rung in Rung}
        self.survivors: list[Observation] = []
        """Failures that came further than some phase: they passed what strikes there."""
        self._surviving: dict[tuple[Rung, Phase], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._num_survivors: dict[Phase, int] = defaultdict(int)
        self._num_failed: dict[Phase, int] = defaultdict(int)
        self._launches: dict[tuple[Rung, str], tuple[list[Observation], list[Failed]]] = {}
        self.kept = Kept()
        """What was weighed before, as far as it holds."""
        self.counts: dict[tuple[Reason, Place, tuple[int, ...]], int] = {}
        """How many passed a place where some conditions hold, as far as it was asked since the last trial."""
        self.seen_by_chance: dict[tuple[Reason, Place, int], list[tuple[int, int]]] = {}
        """Where chance was seen, for each place of failures (`chance`), as far as it was asked since the last trial."""
        self.often: dict[tuple[Reason, Place, int, int], tuple[int, float]] = {}
        """How often it strikes (`chance`), likewise."""
        self.certain: dict[tuple[Reason, int], tuple[object, Any]] = {}
        """Failures beside whose cause chance was certain (`chance`), with what was asked, and why."""
        self._ran: set[tuple[str, str]] = set()
        self._replaced: set[tuple[str, str]] = set()
        self.num_values = 0
        """Grows with every value that is seen to run, or to be replaced, for the first time."""

    def add(self, seen: Observation) -> None:
        """Take in one closed trial."""
        self.counts.clear()
        self.seen_by_chance.clear()
        self.often.clear()
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
        conditions = self.conditions_of(seen)
        for reason in self.reasons:
            if self.bears_on(seen, reason):
                self.kept.passed(reason, conditions)

    def note_values(self, requested: Assignment, ran: Assignment) -> None:
        """Take in which values a trial asked for, and which ran."""
        self._ran.update((name, repr(value)) for name, value in ran.items())
        self._replaced.update((name, repr(value)) for name, value in requested.items() if ran[name] != value)
        self.num_values = len(self._ran) + len(self._replaced)

    def never_runs(self, name: str, value: Scalar) -> bool:
        """Return whether the engine ran something else each time that this value was asked for."""
        key = (name, repr(value))
        return key in self._replaced and key not in self._ran

    def against(self, conditions: tuple[int, ...], place: Place, reason: Reason) -> bool:
        """Return whether anything that satisfies all conditions passed the place, at its rung or above it.

        A launch that failed for another reason, or in other words, in a later phase passed what strikes there.
        """
        rung, phase, words = place
        if _all(conditions, self._satisfying[rung]):
            return True
        return bool(_all(conditions, self._surviving[rung, phase]) & ~self.reasons[reason].survivors[words])

    def passed(self, place: Place, reason: Reason) -> Callable[[int], int]:
        """Return what maps a condition to the bits of all that satisfied it and passed a place, as `against` has it."""
        rung, phase, words = place
        satisfying, surviving = self._satisfying[rung], self._surviving[rung, phase]
        others, shift = ~self.reasons[reason].survivors[words], len(self.passes)
        return lambda number: satisfying.get(number, 0) | (surviving.get(number, 0) & others) << shift

    def reached(self, phase: Phase) -> int:
        """Return how many launches came further than a phase."""
        return len(self.passes) + self._num_survivors[phase]

    def num_failed(self, reason: Reason) -> int:
        """Return how many launches and probes failed, for any reason, in phases in which a reason struck."""
        return sum(self._num_failed[phase] for phase in {phase for _, phase, _ in self.reasons[reason].struck})

    def struck_otherwise(self, conditions: tuple[int, ...], failed: Failed) -> Iterator[Reason]:
        """Yield the other reasons for which something that satisfies all conditions failed in a failure's phase."""
        for reason, other in self.reasons.items():
            bits = sum(bits for place, bits in other.struck.items() if place[1] is failed.failure.phase)
            if reason is not failed.failure.reason and bits and bits & _all(conditions, other.satisfying):
                yield reason

    def bears_on(self, seen: Observation, reason: Reason) -> bool:
        """Return whether a trial of another reason changes what is known where failures of a reason struck.

        One that passed does. One that failed did not come past anything that strikes in its own phase or later.
        """
        if seen.failure is None:
            return True
        came_to = PHASE_ORDER[seen.failure.phase]
        return any(PHASE_ORDER[phase] < came_to for _, phase, _ in self.reasons[reason].struck)

    def contradicting(self, conditions: tuple[int, ...], rung: Rung) -> list[Observation]:
        """Return the passes at this rung or above it that satisfy all conditions, oldest first."""
        bits = _all(conditions, self._satisfying[rung])
        return sorted((self.passes[place] for place in positions(bits)), key=lambda seen: seen.moment)

    def supporting(self, conditions: tuple[int, ...], reason: Reason) -> int:
        """Return the bits of the failures of a reason that satisfy all conditions, and that these may have caused.

        Where the conditions hold and a rung passed, a failure at that rung or below it had another cause.
        """
        evidence = self.reasons[reason]
        bits = _all(conditions, evidence.satisfying)
        for place, seen_there in evidence.struck.items():
            if bits & seen_there and self.against(conditions, place, reason):
                bits &= ~seen_there
        return bits

    def covered(self, reason: Reason, rung: Rung, phase: Phase, conditions: tuple[int, ...]) -> int:
        """Return the bits of the failures that a dead end of this place explains: none that struck before it could."""
        struck = self.reasons[reason].struck.items()
        earlier = (bits for at, bits in struck if at[0] is rung and PHASE_ORDER[at[1]] < PHASE_ORDER[phase])
        return self.supporting(conditions, reason) & ~sum(earlier)

    def is_seen_elsewhere(self, failed: Failed, bits: int) -> bool:
        """Return whether another launch is among these failures: the same one again only says that it was no chance."""
        seen = self.reasons[failed.failure.reason]
        at_its_rung = bits & seen.at_rung(failed.seen.rung)
        for name, group in zip(failed.seen.visible, failed.conditions, strict=True):
            compared = bits if name in self.space.probe_parameters else at_its_rung
            if any(compared & ~seen.satisfying[number] for number in group):
                return True
        return False

    def conditions_of(self, seen: Observation) -> frozenset[int]:
        """Return the conditions that an observation satisfies, as the lexicon numbers them."""
        return frozenset(number for group in self._conditions(seen) for number in group)

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
        failed = Failed(
            seen=seen,
            failure=failure,
            index=len(evidence.failures),
            conditions=self._conditions(seen),
            order=_order(seen, failure),
            signature=signature_of(failure),
            blames=frozenset(failure.blames).intersection(seen.visible),
            place=(seen.rung, failure.phase, words_of(failure)),
            draw=zlib.crc32(assignment_key(seen.assignment).encode()),
        )
        evidence.failures.append(failed)
        self._num_failed[failure.phase] += 1
        bisect.insort(evidence.ordered, failed, key=lambda each: each.order)
        evidence.blaming[failed.blames] |= 1 << failed.index
        evidence.looking[failed.signature] |= 1 << failed.index
        evidence.struck[failed.place] |= 1 << failed.index
        for group in failed.conditions:
            for number in group:
                evidence.satisfying[number] |= 1 << failed.index
        self._add_survivor(failed)
        return failed

    def _add_survivor(self, failed: Failed) -> None:
        bit = 1 << len(self.survivors)
        self.survivors.append(failed.seen)
        self.reasons[failed.failure.reason].survivors[words_of(failed.failure)] |= bit
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
