"""Keeps the map up to date as trials close: what one more trial cannot change is not learned again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.deadends.atlas import Atlas
from agent.deadends.contradictions import Ledger, Weightless
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.evidence import Evidence
from agent.deadends.inheritance import Heirloom
from agent.deadends.intake import Intake
from agent.deadends.learn import Lesson
from agent.deadends.learned import Learned
from agent.deadends.observation import Observation, observation_of
from agent.deadends.refutations import refuted
from agent.deadends.strikes import Strikes, forbidden_by
from agent.deadends.variants import Variants
from agent.reasons import Reason
from agent.store.trial import Trial
from search_spaces import Facts, SearchSpace, matches_all

ROUNDS = 3
"""How often what became clear is used to make more of it clear."""


class Charter:
    """The map of a growing study."""

    def __init__(self, space: SearchSpace, facts: Facts, inherited: Sequence[DeadEnd] = ()) -> None:
        self._space, self._facts, self._inherited = space, facts, tuple(inherited)
        self.ruled_out: Counter[str] = Counter()
        """Candidates that were not launched, by why, since this process began."""
        self._ledger = Ledger(space)
        self._begin(frozenset(), frozenset())

    def _begin(self, forgotten: frozenset[str], weightless: Weightless) -> None:
        self._forgotten, self._weightless = forgotten, weightless
        self._evidence = Evidence(self._space, self._facts)
        self._variants = Variants(self._space, self._facts)
        self._heirlooms = [Heirloom(found) for found in self._inherited if found.id not in forgotten]
        self._refuting: list[Trial] = []
        self._alone: dict[Reason, Lesson] = {}
        self._learned: dict[Reason, Learned] = {}
        self._beside: dict[Reason, tuple[Lesson, tuple[int, int], dict[Strikes, Lesson]]] = {}
        """What unclear reasons taught beside others, as long as they teach the same alone.

        And the same values run, and nothing more failed in their phases.
        """
        self._trials, self._probes = Intake(), Intake()
        self._atlas = self._drawn()

    def chart(self, trials: Sequence[Trial], probes: Sequence[Trial], forgotten: frozenset[str] = frozenset()) -> Atlas:
        """Return the map of these trials, which must include all those of the call before.

        Args:
            trials: Launches.
            probes: Probes.
            forgotten: Ids of dead ends, and labels of the trials behind them, that the user wants to be left out.
        """
        fresh = [*self._probes.fresh(probes), *self._trials.fresh(trials)]
        self._ledger.take(fresh)
        weightless = self._ledger.weightless
        if (forgotten, weightless) != (self._forgotten, self._weightless):
            self._begin(forgotten, weightless)
            fresh = [*self._probes.fresh(probes), *self._trials.fresh(trials)]
        touched: set[Reason] = set()
        is_new = False
        for trial in fresh:
            seen = observation_of(trial, self._space, self._weightless)
            if seen is not None and not (seen.failure and seen.label in forgotten):
                is_new = True
                touched |= self._take(trial, seen)
        if is_new:
            self._learn(touched)
        if is_new or self._atlas.contradictions != self._ledger.contradictions:
            self._atlas = self._drawn()
        return self._atlas

    def _learn(self, touched: set[Reason]) -> None:
        """Learn what the touched reasons teach on their own, then what of the rest other dead ends hide anyway."""
        known = [each.entry(self._facts) for each in self._heirlooms if each.explains]
        for reason in touched:
            self._alone[reason] = Lesson(reason, self._evidence, self._facts, known)
        lessons = {reason: self._alone[reason] for reason in Reason if reason in self._alone}
        unclear = [reason for reason, alone in lessons.items() if alone.is_unclear]
        for _ in range(ROUNDS):  # always from the start: what is concluded does not depend on what was believed before
            before = [found for lesson in lessons.values() for found in lesson.confirmed]
            strikes = (*known, *before)
            lessons |= {each: self._beside_others(each, known, strikes) for each in unclear}
            if [found for lesson in lessons.values() for found in lesson.confirmed] == before:
                break
        self._learned = {reason: lesson.learned for reason, lesson in lessons.items()}

    def _beside_others(self, reason: Reason, known: Sequence[DeadEnd], strikes: Sequence[DeadEnd]) -> Lesson:
        """Return what a reason teaches beside dead ends that strike anyway; what bears on neither is not learned again.

        Of those dead ends only what they forbid counts (`strikes.folded`), and of all else only which values run and
        what else strikes in the same phases.
        """
        alone, others = self._alone[reason], (self._evidence.num_values, self._evidence.num_failed(reason))
        asked = forbidden_by(strikes)
        kept = self._beside.get(reason)
        if kept is None or kept[0] is not alone or kept[1] != others:
            kept = self._beside[reason] = (alone, others, {})
        if asked not in kept[2]:
            kept[2][asked] = Lesson(reason, self._evidence, self._facts, known, strikes)
        return kept[2][asked]

    def _take(self, trial: Trial, seen: Observation) -> set[Reason]:
        """Take in a closed trial; return the reasons whose lesson it may change."""
        self._evidence.add(seen)
        self._evidence.note_values(trial.work.requested, seen.assignment)
        self._variants.take(seen)
        if trial.outcome is not None and trial.outcome.refutes:
            self._refuting.append(trial)
        told = {each.found.reason for each in self._heirlooms if each.take(seen, trial.work.requested)}
        return {reason for reason in told if reason in self._evidence.reasons} | self._touched_by(seen)

    def _touched_by(self, seen: Observation) -> set[Reason]:
        """A failure touches its own reason; anything touches the reasons that are unclear or that it contradicts."""
        own = set() if seen.failure is None else {seen.failure.reason}
        return own | {reason for reason in self._evidence.reasons if self._is_open(reason, seen)}

    def _is_open(self, reason: Reason, seen: Observation) -> bool:
        if not self._evidence.bears_on(seen, reason):
            return False
        learned = self._learned.get(reason)
        if learned is None or any(matches_all(found.conditions, seen.assignment) for found in learned.flaky):
            return True
        if (self._alone[reason].is_unclear or learned.flaky or learned.edges) and self._is_moved(reason, seen):
            return True
        return any(matches_all(found.conditions, seen.assignment) for found in learned.confirmed)

    def _is_moved(self, reason: Reason, seen: Observation) -> bool:
        """Return whether a trial of another reason changes what this reason teaches, on its own or beside others."""
        passed, beside, kept = self._evidence.conditions_of(seen), self._beside.get(reason), self._evidence.kept
        lessons = [self._alone[reason], *(beside[2].values() if beside else ())]
        confirmed = (found for lesson in lessons for found in lesson.confirmed)
        return (
            any(lesson.is_moved() for lesson in lessons)
            or any(
                kept.contradicts(passed, reason, index) for index in set().union(*(each.weighed for each in lessons))
            )
            or any(matches_all(found.conditions, seen.assignment) for found in confirmed)
        )

    def _drawn(self) -> Atlas:
        """Put together what was inherited, learned and refuted; each id stands for one entry."""
        learned = [self._learned[reason] for reason in Reason if reason in self._learned]
        inherited = [each.entry(self._facts) for each in self._heirlooms]
        own = [found for each in learned for found in (*each.confirmed, *each.suspected, *each.edges, *each.flaky)]
        repeated = {
            found.id
            for each in learned
            for found, why in zip(each.suspected, each.suspicions, strict=True)
            if why.is_repeated
        }
        named = _named_once([*inherited, *own, *refuted(self._refuting, self._forgotten)])
        with_escapes = (self._with_escapes(found, found.id in repeated) for found in named)
        dead_ends = sorted(with_escapes, key=lambda found: found.state is not DeadEndState.CONFIRMED)
        suspicions = tuple(why for each in learned for why in each.suspicions)
        ledger = self._ledger
        return Atlas(tuple(dead_ends), suspicions, ledger.contradictions, self._weightless, ledger.missed)

    def _with_escapes(self, found: DeadEnd, is_repeated: bool) -> DeadEnd:
        if found.state is not DeadEndState.CONFIRMED and not is_repeated:
            return found
        escapes = self._variants.escapes(found)
        return found.model_copy(update={"escapes": escapes}) if escapes else found


def _named_once(dead_ends: Sequence[DeadEnd]) -> list[DeadEnd]:
    """Leave out what is said twice: an entry of the same state, reason and conditions; number ids that are taken."""
    kept: dict[tuple[object, ...], DeadEnd] = {}
    for found in dead_ends:
        kept.setdefault((found.state, found.reason, found.conditions, found.rung), found)
    uses: Counter[str] = Counter()
    named = []
    for found in kept.values():
        uses[found.id] += 1
        again = uses[found.id]
        named.append(found if again == 1 else found.model_copy(update={"id": f"{found.id}-{again}"}))
    return named


def chart(
    trials: Sequence[Trial],
    probes: Sequence[Trial],
    space: SearchSpace,
    facts: Facts,
    inherited: Sequence[DeadEnd] = (),
    forgotten: frozenset[str] = frozenset(),
) -> Atlas:
    """Return the map that the closed trials support."""
    return Charter(space, facts, inherited).chart(trials, probes, forgotten)
