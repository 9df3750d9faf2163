"""Evidence → dead ends. A pure function of what was seen: the order of the trials does not change what is concluded.

For each failure, the conjunctions that no pass contradicts are weighed (`explain`). One that is far likelier than all
others together, and that failed often enough not to be chance, is confirmed and covers every failure of its reason
that it matches; what is left is suspected. A pass inside a dead end at its rung or above it takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agent.deadends.dead_end import DeadEnd
from agent.deadends.entries import Entries, by_age
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.explain import (
    CHANCE,
    LARGEST,
    NAMES_ITS_CAUSE,
    OFTEN_PASSES,
    SEEN_FLAKY,
    Explanation,
    beside_chance,
    chance_against_cause,
    explanations,
)
from agent.deadends.strikes import is_within
from agent.deadends.suspicion import Suspicion
from agent.reasons import Reason
from search_spaces import Conjunction, Facts, assignment_key

BELIEVED = 0.95
"""Share of the best explanation from which it is believed."""
REPEATS_BY_CHANCE = 0.5
"""How likely a failure that was chance repeats all the same."""
OTHERS_UNCLEAR = 4.0
"""By how much the odds of chance rise while other failures that look the same are not explained either."""
MOST_CHANCE = (0.05, 0.0125, 0.003)
"""Probability of chance up to which failures count as real, for one condition, two, three: of larger conjunctions there
are more, so that chance more easily looks like one of them."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What the failures of one reason teach."""

    confirmed: tuple[DeadEnd, ...] = ()
    suspected: tuple[DeadEnd, ...] = ()
    flaky: tuple[DeadEnd, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    """One for each suspected dead end, in the same order: what an experiment needs to know."""


def learn(
    reason: Reason,
    evidence: Evidence,
    facts: Facts,
    known: Sequence[DeadEnd] = (),
    strikes: Sequence[DeadEnd] | None = None,
) -> Learned:
    """Return the dead ends that the failures of a reason support.

    Args:
        reason: The reason.
        evidence: What the study saw.
        facts: The facts of its node.
        known: Dead ends whose failures need no other explanation.
        strikes: Confirmed dead ends of any reason: no trial can tell what else holds in them, nor for values that the
            engine always replaces. None: neither is looked at.
    """
    return _Lesson(reason, evidence, facts, known, strikes).learned()


@dataclass
class _Lesson:
    reason: Reason
    evidence: Evidence
    facts: Facts
    known: Sequence[DeadEnd]
    strikes: Sequence[DeadEnd] | None
    confirmed: list[tuple[int, ...]] = field(default_factory=list)
    flaky: set[str] = field(default_factory=set)
    """Signatures of failures that did not repeat, or that no few conditions explain."""
    _found: dict[tuple[int, int], list[Explanation]] = field(default_factory=dict)

    def learned(self) -> Learned:
        seen = self.evidence.reasons[self.reason]
        ordered = [failed for failed in seen.ordered if failed.index not in seen.flaky]
        self.flaky = {seen.failures[index].signature for index in seen.flaky}
        while True:  # what nothing small explains casts doubt on all that looks like it
            unexplained = self._explain_all(ordered, seen.steady & ~self._known_already())
            left = [failed for failed in ordered if unexplained >> failed.index & 1]
            odd = {each.signature for each in left if _is_odd(self._explanations(each, unexplained))} - self.flaky
            if not odd:
                break
            self.flaky |= odd
        entries = Entries(self.reason, self.evidence, self.facts)
        confirmed = tuple(map(entries.confirmed, self._most_general()))
        suspicions = self._suspicions(left, unexplained)
        return Learned(
            confirmed=confirmed,
            suspected=tuple(entries.suspected(key, group) for key, group in suspicions.items()),
            flaky=tuple(map(entries.flaky, self._contradicted(left, unexplained))),
            suspicions=tuple(group[0] for group in suspicions.values()),
        )

    def _explain_all(self, failures: Sequence[Failed], unexplained: int) -> int:
        """Confirm what is believed; return the bits of the failures that are left to explain."""
        self.confirmed = []
        left, before = failures, -1
        while unexplained != before:  # what one failure explains may make another one clear
            before = unexplained
            left = [failed for failed in left if unexplained >> failed.index & 1]
            for failed in left:
                if unexplained >> failed.index & 1:
                    unexplained = self._explain(failed, unexplained)
        return unexplained

    def _explanations(self, failed: Failed, unexplained: int) -> list[Explanation]:
        """Return what may have caused a failure, chance left out."""
        alike = unexplained & self.evidence.reasons[self.reason].alike(failed)
        key = (failed.index, alike)
        if key not in self._found:
            self._found[key] = explanations(failed, self.evidence, alike, self.strikes)
        return self._found[key]

    def _known_already(self) -> int:
        """Return the bits of the failures that an inherited dead end explains."""
        mine = [found for found in self.known if found.reason is self.reason]
        failures = self.evidence.reasons[self.reason].failures if mine else []
        return sum(
            1 << each.index
            for each in failures
            if any(found.covers(each.seen.assignment, each.seen.visible) for found in mine)
        )

    def _odds(self, failed: Failed, best: Explanation, unexplained: int) -> float:
        """Return the odds that chance caused a failure and those which its likeliest explanation covers.

        Where chance was seen, it may hit more often where a part of the explanation holds.
        """
        if (usual := self._usual_odds(failed)) == 0.0:
            return 0.0
        seen = self.evidence.reasons[self.reason]
        alike = unexplained & seen.looking[failed.signature]
        others = alike & ~self._covered(best.numbers)
        passed = self.evidence.reached(failed.failure.phase)
        by_chance = chance_against_cause(best.support, others.bit_count(), passed)
        if failed.signature in self.flaky:
            passing = self.evidence.passed(failed.place, self.reason)
            for number in best.numbers:
                others_here, passed_here = others & seen.satisfying[number], passing(number).bit_count()
                here = chance_against_cause(best.support, others_here.bit_count(), passed_here, OFTEN_PASSES)
                by_chance = max(by_chance, here)
        return usual * by_chance

    def _usual_odds(self, failed: Failed) -> float:
        """Return the odds that a first failure like this is chance."""
        odds = CHANCE[failed.failure.policy] * (NAMES_ITS_CAUSE if failed.blames else 1.0)
        return odds * (SEEN_FLAKY if failed.signature in self.flaky else 1.0)

    def _explain(self, failed: Failed, unexplained: int) -> int:
        """Confirm the failure's best explanation where it is believed; return what is left to explain."""
        found = self._explanations(failed, unexplained)
        if not found or not self._is_believed(failed, found[0], unexplained):
            return unexplained
        self.confirmed.append(found[0].numbers)
        return unexplained & ~self._covered(found[0].numbers)

    def _is_believed(self, failed: Failed, best: Explanation, unexplained: int) -> bool:
        """One failure alone confirms nothing: its message may name only a part of the cause."""
        if best.support < 2 or best.share < BELIEVED or not self._is_no_chance(failed, best, unexplained):
            return False
        return _is_little(self._odds(failed, best, unexplained), best) and self._is_seen_elsewhere(failed, best)

    def _is_seen_elsewhere(self, failed: Failed, best: Explanation) -> bool:
        """Return whether another launch failed by it: the same one again only says that it was no chance."""
        seen, bits = self.evidence.reasons[self.reason], self._covered(best.numbers)
        at_its_rung = bits & seen.at_rung(failed.seen.rung)
        for name, group in zip(failed.seen.visible, failed.conditions, strict=True):
            compared = bits if name in self.evidence.space.probe_parameters else at_its_rung
            if any(compared & ~seen.satisfying[number] for number in group):
                return True
        return False

    def _is_no_chance(self, failed: Failed, best: Explanation, unexplained: int) -> bool:
        alike = unexplained & self.evidence.reasons[self.reason].looking[failed.signature]
        unclear = OTHERS_UNCLEAR if alike & ~self._covered(best.numbers) else 1.0
        return _is_little(unclear * self._usual_odds(failed) * REPEATS_BY_CHANCE ** (best.support - 1), best)

    def _covered(self, conditions: tuple[int, ...]) -> int:
        """Return the bits of the failures that a dead end explains."""
        return self.evidence.supporting(conditions, self.reason)

    def _most_general(self) -> list[tuple[int, ...]]:
        """Leave out what a more general confirmed dead end says already."""
        kept = [self._conjunction(numbers) for numbers in self.confirmed]
        return [
            numbers
            for numbers, special in zip(self.confirmed, kept, strict=True)
            if not any(special != general and _implies(special, general) for general in kept)
        ]

    def _conjunction(self, numbers: tuple[int, ...]) -> Conjunction:
        return tuple(map(self.evidence.lexicon.condition, numbers))

    def _suspicions(self, left: Sequence[Failed], unexplained: int) -> dict[tuple[int, ...], list[Suspicion]]:
        groups: dict[tuple[int, ...], list[Suspicion]] = {}
        for failed in left:
            found = self._explanations(failed, unexplained)
            if found:
                is_repeated = self._is_no_chance(failed, found[0], unexplained)
                odds = self._odds(failed, found[0], unexplained)
                suspicion = Suspicion(failed, beside_chance(found, odds), is_repeated)
                groups.setdefault(found[0].numbers, []).append(suspicion)
        return groups

    def _contradicted(self, left: Sequence[Failed], unexplained: int) -> Iterator[Failed]:
        """One failure of each launch that also passed, at its rung or above it: nothing can explain such a failure."""
        seen = self.evidence.reasons[self.reason]
        flaky = [seen.failures[index] for index in seen.flaky]
        flaky += [failed for failed in left if not self._explanations(failed, unexplained)]
        flaky = by_age(flaky)
        launches: dict[tuple[str, str], Failed] = {}
        for failed in flaky:
            launches.setdefault((failed.seen.rung, assignment_key(failed.seen.assignment)), failed)
        yield from (launches[key] for key in sorted(launches) if launches[key].seen.visible)


def _is_little(odds: float, best: Explanation) -> bool:
    return odds / (1 + odds) <= MOST_CHANCE[min(len(best.conditions), len(MOST_CHANCE)) - 1]


def _is_odd(found: Sequence[Explanation]) -> bool:
    return not found or len(found[0].conditions) > LARGEST


def _implies(special: Conjunction, general: Conjunction) -> bool:
    """Return whether everything that satisfies `special` satisfies `general`."""
    point = {condition.parameter: condition for condition in special}
    return all(
        (mine := point.get(condition.parameter)) is not None and is_within(mine, condition) for condition in general
    )
