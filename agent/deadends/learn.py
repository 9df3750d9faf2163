"""Evidence → dead ends. A pure function of what was seen: the order of the trials does not change what is concluded.

For each failure, the conjunctions that no pass contradicts are weighed (`explain`). One that is far likelier than all
others together, and that failed often enough not to be chance, is confirmed and covers every failure of its reason
that it matches; what is left is suspected. A pass inside a dead end at its rung or above it takes it away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.deadends.claims import RUNG_ORDER
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.explain import (
    CHANCE,
    LEAST_SHARE,
    NAMES_ITS_CAUSE,
    SEEN_FLAKY,
    Explanation,
    chance_odds,
    explanations,
)
from agent.deadends.implied import Implications
from agent.reasons import REASONS, Policy, Reason
from runners import Rung
from search_spaces import Comparison, Condition, Conjunction, Facts, Scalar, assignment_key

BELIEVED = 0.95
"""Share of the best explanation from which it is believed."""
REPEATS_BY_CHANCE = 0.5
"""How likely a failure that was chance repeats all the same."""
MOST_CHANCE = 0.01
"""Probability of chance up to which a failure counts as real."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A failure that is not explained yet, with what may have caused it."""

    failed: Failed
    explanations: tuple[Explanation, ...]
    is_repeated: bool
    """Whether it failed often enough not to be chance."""

    @property
    def best(self) -> Explanation:
        """The likeliest explanation."""
        return self.explanations[0]


@dataclass(frozen=True, slots=True)
class Learned:
    """What the failures of one reason teach."""

    confirmed: tuple[DeadEnd, ...] = ()
    suspected: tuple[DeadEnd, ...] = ()
    flaky: tuple[DeadEnd, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    """One for each suspected dead end, in the same order: what an experiment needs to know."""


def learn(reason: Reason, evidence: Evidence, facts: Facts, known: Sequence[DeadEnd] = ()) -> Learned:
    """Return the dead ends that the failures of a reason support, but for what `known` ones explain already."""
    return _Lesson(reason, evidence, facts, known).learned()


@dataclass
class _Lesson:
    reason: Reason
    evidence: Evidence
    facts: Facts
    known: Sequence[DeadEnd]
    confirmed: list[tuple[int, ...]] = field(default_factory=list)
    odds: float = 0.0
    """Odds that chance causes the failures that are not explained yet."""
    _ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._implications = Implications(self.evidence.space, self.facts)

    def learned(self) -> Learned:
        seen = self.evidence.reasons[self.reason]
        steady = [failed for failed in seen.failures if failed.index not in seen.flaky]
        unexplained = seen.steady & ~self._known_already()
        left = sorted(steady, key=lambda failed: failed.order)
        while True:  # what one failure explains may make another one clear
            before = unexplained
            self.odds = self._chance_odds(left, unexplained)
            for failed in left:
                if unexplained >> failed.index & 1:
                    unexplained = self._explain(failed, unexplained)
            left = [failed for failed in left if unexplained >> failed.index & 1]
            if unexplained == before:
                break
        confirmed = tuple(map(self._confirmed, self._most_general()))
        suspicions = self._suspicions(left, unexplained)
        return Learned(
            confirmed=confirmed,
            suspected=tuple(self._suspected(key, group) for key, group in suspicions.items()),
            flaky=tuple(map(self._flaky, self._contradicted(left, unexplained))),
            suspicions=tuple(group[0] for group in suspicions.values()),
        )

    def _explanations(self, failed: Failed, unexplained: int, odds: float = 0.0) -> list[Explanation]:
        return self._implications.folded(explanations(failed, self.evidence, unexplained, odds))

    def _known_already(self) -> int:
        """Return the bits of the failures that an inherited dead end explains."""
        mine = [found for found in self.known if found.reason is self.reason]
        failures = self.evidence.reasons[self.reason].failures if mine else []
        return sum(
            1 << each.index
            for each in failures
            if any(found.covers(each.seen.assignment, each.seen.visible) for found in mine)
        )

    def _chance_odds(self, left: Sequence[Failed], unexplained: int) -> float:
        seen = self.evidence.reasons[self.reason]
        causes, uncovered = 0, unexplained
        for failed in left:
            if uncovered >> failed.index & 1:
                found = self._explanations(failed, uncovered)
                uncovered &= ~(self._covered(found[0].numbers) if found else 0) & ~(1 << failed.index)
                causes += 1
        failures = unexplained.bit_count()
        policy = left[0].failure.policy if left else REASONS[self.reason].policy
        launches = failures + self.evidence.reached(self.reason)
        has_blames = all(failed.blames for failed in left if unexplained >> failed.index & 1)
        return chance_odds(causes, failures, launches, policy=policy, is_flaky=bool(seen.flaky), has_blames=has_blames)

    def _explain(self, failed: Failed, unexplained: int) -> int:
        """Confirm the failure's best explanation where it is believed; return what is left to explain."""
        found = self._explanations(failed, unexplained, self.odds)
        if not found or not self._is_believed(failed, found[0]):
            return unexplained
        self.confirmed.append(found[0].numbers)
        return unexplained & ~self._covered(found[0].numbers)

    def _is_believed(self, failed: Failed, best: Explanation) -> bool:
        """One failure alone confirms nothing: its message may name only a part of the cause."""
        return best.support >= 2 and best.share >= BELIEVED and self._is_no_chance(failed, best.support)

    def _is_no_chance(self, failed: Failed, support: int) -> bool:
        odds = CHANCE[failed.failure.policy] * (NAMES_ITS_CAUSE if failed.blames else 1.0)
        if self.evidence.reasons[self.reason].flaky:
            odds *= SEEN_FLAKY
        odds *= REPEATS_BY_CHANCE ** (support - 1)
        return odds / (1 + odds) <= MOST_CHANCE

    def _covered(self, conditions: tuple[int, ...]) -> int:
        """Return the bits of the failures that a dead end explains."""
        return self.evidence.supporting(conditions, self.reason)

    def _rung(self, conditions: tuple[int, ...]) -> Rung:
        """Return the cheapest rung at which the failure shows."""
        return min((failed.seen.rung for failed in self._matching(conditions)), key=RUNG_ORDER.__getitem__)

    def _matching(self, conditions: tuple[int, ...]) -> list[Failed]:
        seen = self.evidence.reasons[self.reason]
        bits = self.evidence.supporting(conditions, self.reason) & seen.steady
        return [failed for failed in seen.failures if bits >> failed.index & 1]

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
            found = self._explanations(failed, unexplained, self.odds)
            if found:
                is_repeated = self._is_no_chance(failed, found[0].support)
                suspicion = Suspicion(failed, tuple(found), is_repeated)
                groups.setdefault(found[0].numbers, []).append(suspicion)
        return groups

    def _contradicted(self, left: Sequence[Failed], unexplained: int) -> Iterator[Failed]:
        """One failure of each launch that also passed, at its rung or above it: nothing can explain such a failure."""
        seen = self.evidence.reasons[self.reason]
        flaky = [seen.failures[index] for index in seen.flaky]
        flaky += [failed for failed in left if not self._explanations(failed, unexplained, self.odds)]
        flaky = _by_age(flaky)
        launches: dict[tuple[str, str], Failed] = {}
        for failed in flaky:
            launches.setdefault((failed.seen.rung, assignment_key(failed.seen.assignment)), failed)
        yield from (launches[key] for key in sorted(launches) if launches[key].seen.visible)

    def _confirmed(self, numbers: tuple[int, ...]) -> DeadEnd:
        rung = self._rung(numbers)
        support = _by_age(self._matching(numbers))
        suspects = tuple(condition.parameter for condition in self._conjunction(numbers))
        return self._dead_end(numbers, DeadEndState.CONFIRMED, support, suspects, rung)

    def _suspected(self, numbers: tuple[int, ...], group: Sequence[Suspicion]) -> DeadEnd:
        support = _by_age(each.failed for each in group)
        return self._dead_end(numbers, DeadEndState.SUSPECTED, support, self._suspects(group[0]), support[0].seen.rung)

    def _suspects(self, suspicion: Suspicion) -> tuple[str, ...]:
        """Return what may belong to the cause: what a message of a reason that is dead at once blames, or all else."""
        best = tuple(condition.parameter for condition in suspicion.best.conditions)
        if suspicion.failed.failure.policy is Policy.DEAD_AT_ONCE and set(best) == suspicion.failed.blames:
            return best
        named = {
            condition.parameter
            for each in suspicion.explanations
            if each.share >= LEAST_SHARE
            for condition in each.conditions
        }
        return tuple(name for name in suspicion.failed.seen.visible if name in named)

    def _flaky(self, failed: Failed) -> DeadEnd:
        lexicon = self.evidence.lexicon
        numbers = tuple(min(group, key=lexicon.width) for group in failed.conditions)
        passes = self.evidence.contradicting(numbers, failed.seen.rung)
        found = self._dead_end(numbers, DeadEndState.FLAKY, [failed], (), failed.seen.rung)
        return found.model_copy(update={"contradicting": tuple(seen.label for seen in passes)})

    def _dead_end(
        self,
        numbers: tuple[int, ...],
        state: DeadEndState,
        support: Sequence[Failed],
        suspects: tuple[str, ...],
        rung: Rung,
    ) -> DeadEnd:
        first, row = support[0], REASONS[self.reason]
        depends_on = first.failure.facts
        conditions = self._conjunction(numbers)
        return DeadEnd(
            id=self._identify(conditions, state, rung),
            conditions=conditions,
            reason=self.reason,
            policy=row.policy,
            state=state,
            rung=rung,
            suspects=suspects,
            observed=first.seen.assignment,
            scope={name: self.facts[name] for name in depends_on if self.facts.get(name) is not None},
            depends_on=depends_on,
            support=tuple(failed.seen.label for failed in support),
            does_not_matter=_varied(conditions, support),
            decisive=first.failure.decisive.text if first.failure.decisive else "",
            cure=first.failure.cure,
            seconds=sum(failed.seen.seconds for failed in support),
        )

    def _identify(self, conditions: Conjunction, state: DeadEndState, rung: Rung) -> str:
        """Return an id that stays the same while a threshold is still moving, and is nobody else's."""
        parts = [
            f"{condition.parameter}{condition.comparison}"
            + (str(condition.value) if condition.comparison is Comparison.EQUAL else "")
            for condition in conditions
        ]
        found = _digest([self.reason.value, *sorted(parts)])
        if found in self._ids:
            found = _digest([self.reason.value, state, rung, *map(str, conditions)])
        self._ids.add(found)
        return found


def _digest(parts: Iterable[str]) -> str:
    return f"D{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:6]}"


def _by_age(failures: Iterable[Failed]) -> list[Failed]:
    return sorted(failures, key=lambda failed: failed.seen.moment)


def _varied(conditions: Conjunction, support: Sequence[Failed]) -> tuple[str, ...]:
    """Return the parameters that differed among the failures: shown not to matter."""
    named = {condition.parameter for condition in conditions}
    visible = [name for name in support[0].seen.visible if name not in named]
    return tuple(name for name in visible if len({repr(failed.seen.assignment[name]) for failed in support}) > 1)


def _implies(special: Conjunction, general: Conjunction) -> bool:
    """Return whether everything that satisfies `special` satisfies `general`."""
    point = {condition.parameter: condition for condition in special}
    return all(
        (mine := point.get(condition.parameter)) is not None and _is_within(mine.comparison, mine.value, condition)
        for condition in general
    )


def _is_within(comparison: Comparison, value: Scalar, general: Condition) -> bool:
    point = {general.parameter: value}
    if general.comparison is Comparison.EQUAL:
        return comparison is Comparison.EQUAL and general.matches(point)
    return comparison in (Comparison.EQUAL, general.comparison) and general.matches(point)
