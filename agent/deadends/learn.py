"""Evidence → dead ends. A pure function of what was seen: the order of the trials does not change what is concluded.

For each failure, the conjunctions that no pass contradicts are weighed (`explain`). One that is far likelier than all
others together, and that failed often enough not to be chance, is confirmed and covers every failure of its reason
that it matches; what is left is suspected. A pass inside a dead end at its rung or above it takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from agent.deadends.chance import CHANCE, MOST_CHANCE, Chance
from agent.deadends.dead_end import DeadEnd
from agent.deadends.doubts import Doubt, doubt, needed_anyway
from agent.deadends.edges import Edge, Limits, still_open
from agent.deadends.entries import Entries, one_of_each_launch
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.explain import USUAL, Explanation, Often, beside_chance, explanations
from agent.deadends.general import explained_by, most_general
from agent.deadends.groups import groups
from agent.deadends.lacks import is_excluded, lacks_of
from agent.deadends.learned import Learned
from agent.deadends.likelihood import Group
from agent.deadends.often import often_of
from agent.deadends.prior import LARGEST
from agent.deadends.strikes import forbidden_by
from agent.deadends.suspected import Suspected, Weighed
from agent.deadends.suspicion import Suspicion
from agent.deadends.turns import Turns
from agent.reasons import Reason
from runners import Phase, Rung
from search_spaces import Facts

BELIEVED = 0.98
"""Share of the best explanation from which it is believed."""


@dataclass
class Lesson:
    """What the failures of a reason teach: at once what is confirmed, and the rest for whoever asks.

    What is asked later is the same as long as nothing that bears on the reason was added to the evidence.
    """

    reason: Reason
    evidence: Evidence
    facts: Facts
    known: Sequence[DeadEnd] = ()
    strikes: Sequence[DeadEnd] | None = None
    _explained: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    """Conditions, and the bits of the failures that they explain."""
    edges: list[Edge] = field(default_factory=list)
    by_chance: int = 0
    """Bits of the failures that did not repeat, or that no few conditions explain."""
    _found: dict[tuple[int, int, int, Often], list[Explanation]] = field(default_factory=dict)
    _oftens: dict[tuple[object, ...], tuple[Chance, int, Often]] = field(default_factory=dict)
    _excluded: list[tuple[Chance, tuple[tuple[int, ...], int, tuple[Group, ...]], bool]] = field(default_factory=list)
    """Where chance was weighed against a cause that is believed otherwise, and whether it is out of the question."""
    _is_drawn_back: bool = False
    """Whether chance was weighed at a limit."""
    _doubts: dict[tuple[tuple[int, ...], int, int], Doubt | None] = field(default_factory=dict)
    _covers: dict[tuple[Rung, Phase, tuple[int, ...]], int] = field(default_factory=dict)
    _suspected: list[Suspected] = field(default_factory=list)
    _learned: Learned | None = None

    def __post_init__(self) -> None:
        seen = self.evidence.reasons[self.reason]
        self._num_flaky = seen.num_flaky
        self._token = self.evidence.kept.token(forbidden_by(self.strikes or ()))
        ordered = [each for each in seen.ordered if each.index not in seen.flaky] if seen.flaky else seen.ordered
        self.by_chance = sum(1 << index for index in seen.flaky)
        while True:  # what nothing small explains casts doubt on all that looks like it
            self._unexplained = self._explain_all(ordered, seen.steady & ~explained_by(self.known, seen.failures))
            self._left = [failed for failed in ordered if self._unexplained >> failed.index & 1]
            self._groups_left, self._odd = self._by_cause(self._left, self._unexplained)
            if not self._odd & ~self.by_chance:
                break
            self.by_chance |= self._odd
        self._entries = Entries(self.reason, self.evidence, self.facts)
        self.confirmed = tuple(
            self._entries.confirmed(numbers, bits)
            for numbers, bits in most_general(self._explained, self.evidence.lexicon)
        )

    @property
    def is_unclear(self) -> bool:
        """True when something is suspected."""
        return bool(self._groups_left)

    @property
    def weighed(self) -> set[int]:
        """The failures of which it was asked what may have caused them, as their evidence numbers them."""
        return {key[0] for key in self._found}

    def is_moved(self) -> bool:
        """Return whether the passes since this was learned may change it, if they contradict nothing that was weighed.

        They do where a launch that had failed passed, or where they make chance another one in what was concluded.
        """
        if self._num_flaky != self.evidence.reasons[self.reason].num_flaky or self._is_drawn_back:
            return True
        seen = self.evidence.reasons[self.reason]
        oftens = any(often_of(chance, alike, seen) != found for chance, alike, found in self._oftens.values())
        return oftens or any(is_excluded(chance, self.strikes, *of) != is_so for chance, of, is_so in self._excluded)

    @property
    def learned(self) -> Learned:
        """All that the failures teach."""
        if self._learned is None:
            self._learned = self._all_learned()
        elif sum(each.is_weighed_anew() for each in self._suspected):  # each of them, not only the first
            suspected = tuple(each.entry for each in self._suspected)
            suspicions = tuple(each.suspicion for each in self._suspected)
            self._learned = replace(self._learned, suspected=suspected, suspicions=suspicions)
        return self._learned

    def _all_learned(self) -> Learned:
        unexplained, groups = self._unexplained, self._groups_left.values()
        self._suspected = [
            Suspected(partial(self._suspicion, group[0], unexplained), partial(self._entries.suspected, group=group))
            for group in groups
        ]
        return Learned(
            confirmed=self.confirmed,
            suspected=tuple(each.entry for each in self._suspected),
            flaky=tuple(map(self._entries.flaky, self._contradicted(self._left, self._odd, unexplained))),
            suspicions=tuple(each.suspicion for each in self._suspected),
            edges=tuple(self._entries.edge(edge) for edge in still_open(self.edges, self._explained)),
        )

    def _explain_all(self, failures: Sequence[Failed], unexplained: int) -> int:
        """Confirm what is believed; return the bits of the failures that are left to explain."""
        self._explained, self.edges = [], []
        left, before = failures, -1
        while unexplained != before:  # what one failure explains may make another one clear
            before = unexplained
            left = [failed for failed in left if unexplained >> failed.index & 1]
            turns = Turns(self._covered)
            for failed in turns.weighed(left):
                if unexplained >> failed.index & 1:
                    found = self._explanations(failed, unexplained)
                    turns.note(failed, found[0].numbers if found else None)
                    unexplained = self._explain(failed, found, unexplained)
        return unexplained

    def _explanations(self, failed: Failed, unexplained: int, spared: Often = USUAL) -> list[Explanation]:
        """Return what may have caused a failure, chance left out; some of the others hardly need this cause."""
        looks = self.evidence.reasons[self.reason].alike(failed)
        alike, by_chance = unexplained & looks, self.by_chance & looks
        key = (failed.index, alike, by_chance, spared)
        if key not in self._found:
            often = self._often(failed, alike | by_chance).sparing(spared)
            self._found[key] = explanations(failed, self.evidence, alike, self.strikes, often, self._token)
        return self._found[key]

    def _often(self, failed: Failed, alike: int) -> Often:
        """Return which failures hardly need a cause of their own where another one does not explain them.

        Those where chance strikes, as far as it was seen; and beside a message that names its cause, those without one.
        """
        key = (failed.place, failed.signature, failed.blames, alike, self.by_chance)
        if key not in self._oftens:
            chance = self._chance(failed)
            self._oftens[key] = chance, alike, often_of(chance, alike, self.evidence.reasons[self.reason])
        return self._oftens[key][2]

    def _seen_of(self, failed: Failed, best: Explanation, unexplained: int) -> tuple[int, tuple[Group, ...]]:
        """Return the bits of the failures that an explanation covers, and the others that look the same."""
        alike = self._alike(failed)
        covered = unexplained & alike & self._covered(failed, best.numbers)
        others = (unexplained | self.by_chance) & alike & ~covered
        explained = partial(self._explanations, unexplained=unexplained)
        return covered, tuple(
            groups(self.evidence.reasons[self.reason], others, self.by_chance, explained, self._covered)
        )

    def _chance(self, failed: Failed) -> Chance:
        return Chance(failed, self.evidence, self.by_chance & self.evidence.reasons[self.reason].alike(failed))

    def _explain(self, failed: Failed, found: Sequence[Explanation], unexplained: int) -> int:
        """Confirm the failure's best explanation where it is believed; return what is left to explain."""
        if not found or not self._is_believed(failed, found[0], unexplained):
            return unexplained
        covered = self._covered(failed, found[0].numbers)
        numbers = self._drawn_back(failed, found[0], unexplained)
        inside = covered if numbers == found[0].numbers else self._covered(failed, numbers)
        if inside != covered:
            support = inside & unexplained & self._alike(failed)
            ordered = self.evidence.reasons[self.reason].ordered
            first = next((each for each in ordered if support >> each.index & 1), None)
            if first is None or not self._is_enough(first, inside, support.bit_count()):
                return unexplained
            self.edges.append(Edge(found[0].numbers, covered & unexplained & ~inside))
        self._explained.append((numbers, inside))
        return unexplained & ~covered

    def _drawn_back(self, failed: Failed, best: Explanation, unexplained: int) -> tuple[int, ...]:
        """Return the conditions of an explanation, with its limits where failures enough are for them."""
        alike = self._alike(failed)
        covered, groups = self._seen_of(failed, best, unexplained)
        chance = self._chance(failed)
        often = self._often(failed, (unexplained | self.by_chance) & alike)
        odds = partial(chance.odds_beyond, groups)
        self._is_drawn_back |= CHANCE[failed.failure.policy] > 0.0
        return Limits(failed, self.evidence, often, odds).drawn_back(best.numbers, covered)

    def _alike(self, failed: Failed) -> int:
        return self.evidence.reasons[self.reason].alike(failed)

    def _is_believed(self, failed: Failed, best: Explanation, unexplained: int) -> bool:
        """Return whether a cause is far likelier than the others and than chance."""
        if best.share < BELIEVED or not self._is_enough(failed, self._covered(failed, best.numbers), best.support):
            return False
        if CHANCE[failed.failure.policy] != 0.0:
            chance, of = self._chance(failed), (best.numbers, *self._seen_of(failed, best, unexplained))
            self._excluded.append((chance, of, is_excluded(chance, self.strikes, *of)))
            if not self._excluded[-1][2]:
                return False
        return self._doubt(failed, best, unexplained) is None

    def _doubt(self, failed: Failed, best: Explanation, unexplained: int) -> Doubt | None:
        """Return the failure in whose view a longer cause would do as well, or None."""
        seen, alike = self.evidence.reasons[self.reason], unexplained & self._alike(failed)
        covered = self._covered(failed, best.numbers)
        explained = partial(self._explanations, unexplained=unexplained)
        key = (best.numbers, alike & covered, alike & ~covered)
        if key not in self._doubts:
            needless = needed_anyway(seen, alike & ~covered, explained, self._covered) & alike & covered
            spared = Often(*self._chance(failed).lone(alike & covered), needless)
            self._doubts[key] = doubt(best.numbers, seen, alike & covered, partial(explained, spared=spared))
        return self._doubts[key]

    def _is_enough(self, failed: Failed, covered: int, support: int) -> bool:
        """One failure alone confirms nothing: its message may name only a part of the cause."""
        return support >= 2 and self._is_repeated(failed, support) and self.evidence.is_seen_elsewhere(failed, covered)

    def _is_repeated(self, failed: Failed, support: int) -> bool:
        return self._chance(failed).odds_of_repeating(support) <= MOST_CHANCE

    def _covered(self, failed: Failed, conditions: tuple[int, ...]) -> int:
        """Return the bits of the failures that a dead end explains: not of those that struck before it could."""
        key = (*failed.place[:2], conditions)
        if key not in self._covers:
            self._covers[key] = self.evidence.covered(self.reason, *key)
        return self._covers[key]

    def _by_cause(self, left: Sequence[Failed], unexplained: int) -> tuple[dict[tuple[int, ...], list[Failed]], int]:
        """Return the failures by their likeliest explanation, and the bits of those that nothing small explains."""
        groups: dict[tuple[int, ...], list[Failed]] = {}
        odd, turns, weighed = 0, Turns(self._covered), set()
        for failed in turns.weighed(left):
            weighed.add(failed.index)
            found = self._explanations(failed, unexplained)
            turns.note(failed, found[0].numbers if found else None)
            if not found or len(found[0].conditions) > LARGEST:
                odd |= 1 << failed.index
            if found:
                groups.setdefault(found[0].numbers, []).append(failed)
        for failed in left:
            if failed.index not in weighed and (cause := turns.cause_of(failed)) is not None:
                groups[cause].append(failed)
        return groups, odd

    def _suspicion(self, failed: Failed, unexplained: int) -> Weighed:
        """Return what is suspected of a failure, beside chance."""
        found: Sequence[Explanation] = self._explanations(failed, unexplained)
        is_repeated = self._is_repeated(failed, found[0].support)
        chance, seen = self._chance(failed), self._seen_of(failed, found[0], unexplained)
        odds, why = chance.weighed(found[0].numbers, *seen)
        if why is not None:  # whatever the cause would be, it is chance
            return Suspicion(failed, beside_chance(found, odds), is_repeated), partial(chance.is_still_certain, why)
        if found[0].share >= BELIEVED and (doubted := self._doubt(failed, found[0], unexplained)) is not None:
            failed, found = doubted.failed, doubted.explanations
            chance, seen = self._chance(failed), self._seen_of(failed, found[0], unexplained)
            odds, _ = chance.weighed(found[0].numbers, *seen)
        is_clear = is_repeated and found[0].share >= BELIEVED
        rivals = tuple(chance.rivals(found[0].numbers, *seen)) if is_clear else ()
        lacks = tuple(lacks_of(chance, self.strikes, found[0].numbers, *seen)) if is_clear else ()
        is_rare = is_clear and not chance.is_excluded(found[0].numbers, *seen)
        return Suspicion(failed, beside_chance(found, odds), is_repeated, rivals, lacks, is_rare), None

    def _contradicted(self, left: Sequence[Failed], odd: int, unexplained: int) -> Iterator[Failed]:
        """One failure of each launch that also passed, at its rung or above it: nothing can explain such a failure."""
        seen = self.evidence.reasons[self.reason]
        flaky = [seen.failures[index] for index in seen.flaky]
        flaky += [each for each in left if odd >> each.index & 1 and not self._explanations(each, unexplained)]
        return one_of_each_launch(flaky)
