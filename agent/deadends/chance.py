"""How much likelier chance made the failures that a conjunction explains than the conjunction did.

Failures of some reasons come and go. Their source may strike everywhere, or more often where some conditions hold, at a
rate that nobody knows. A conjunction without a pass may then be luck: it has few launches, or it is what is left of the
place where the source strikes once the few launches that passed there are taken out. So every place where a source may
strike is weighed with all that was seen, passes included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from agent.deadends.evidence import Evidence, Failed
from agent.deadends.likelihood import (
    EVERYWHERE_RATE,
    SOMEWHERE_RATE,
    Group,
    Seen,
    log_likelihood,
    log_of_everywhere,
    ratio,
)
from agent.deadends.prior import LARGEST, NEW_CAUSE, OTHER_CAUSE, size_prior
from agent.deadends.rivals import Rival
from agent.reasons import Policy, Reason

CHANCE = {Policy.DEAD_AT_ONCE: 0.0, Policy.CONFIRM_ONCE: 0.3, Policy.RETRY_ONCE: 1.0}
"""How much likelier a source of failures that come and go is than a cause, for the same conditions."""
COMES_AND_GOES = {Reason.KERNEL_ERROR: 1.0}
"""The same where it is to be confirmed, of reasons that come and go more often than others with their policy.

A race in a kernel strikes or not. What is suspected meanwhile hangs on the policy alone.
"""
NAMES_ITS_CAUSE = 0.1
"""By how much chance is less likely where the message names a parameter."""

Place = tuple[int, ...]
"""Where a source strikes: conditions as the lexicon numbers them. Empty: everywhere."""
OUT_OF_THE_QUESTION = -200.0
MOST_ODDS, SURELY = 1000.0, 1.01
"""Odds from which chance is certain: a thousandth is left for all causes together, too little to look for one. They are
believed to have stayed above that by what is easy to see while that says a little more."""
MANY = 512
"""Launches that came past a failure's phase from which it does not matter any more how certain chance is. Before, what
is least certain is asked about first."""
LONE = 0.3
"""How likely a single failure among those that a cause explains was chance, for reasons that come and go."""
MOST_CHANCE = 0.02
"""Odds of chance up to which failures count as real, by their number alone; by all that was seen, if their message
names the cause."""
MOST_UNNAMED = 0.01
"""The same by all that was seen of them, where their message names nothing."""
MOST_OF_ONE, MOST_OF_PART = {True: 0.0016, False: 0.0036}, 0.0005
"""The same of a source with a single condition: the whole cause, or one of its conditions.

The former is less where a reason comes and goes as often as it has a cause (ten failures of ten). The latter is less,
since many conjunctions lie in the place of one source, and experiments follow the one that fails.
"""


@dataclass(frozen=True, slots=True)
class Certainty:
    """Why chance is certain beside a cause: one place is likely enough, whatever the others are."""

    place: Place
    is_seen: bool
    """Whether chance was seen there: then that a source is there needs no belief."""
    seen: Seen
    log_of_cause: float
    """How likely the cause is. Passes can only make it less."""


@dataclass(frozen=True)
class Chance:
    """Weighs chance against the causes of failures that look like one of them."""

    failed: Failed
    evidence: Evidence
    certain: int
    """Bits of the failures that look the same and certainly were chance."""

    def odds(self, cause: Place, covered: int, others: Sequence[Group]) -> float:
        """Return how much likelier chance made the covered failures than the cause did.

        Args:
            cause: Conditions that no pass satisfies, as the lexicon numbers them.
            covered: Bits of the failures that look the same and that the cause explains.
            others: Those that neither it nor any confirmed dead end explains.
        """
        return self.weighed(cause, covered, others)[0]

    def weighed(self, cause: Place, covered: int, others: Sequence[Group]) -> tuple[float, Certainty | None]:
        """Return the odds, and why chance is certain where it is: then they are MOST_ODDS. Only where MANY passed."""
        if self.evidence.reached(self.failed.failure.phase) < MANY:
            return self._odds_at(parts_of(cause), cause, covered, others)[0], None
        key, of = (self.failed.failure.reason, self.failed.index), (cause, covered, others, self.certain)
        known, before = self.evidence.certain.get(key, (None, None))
        if before is not None and known == of and self.is_still_certain(before):
            return MOST_ODDS, before
        odds, why = self._odds_at(parts_of(cause), cause, covered, others)
        if odds < MOST_ODDS:
            return odds, None
        self.evidence.certain[key] = of, why
        return MOST_ODDS, why

    def is_still_certain(self, why: Certainty) -> bool:
        """Return whether chance is as certain as it was, now that more passed that nothing contradicts."""
        seen = replace(why.seen, everywhere=self.evidence.reached(self.failed.failure.phase))
        there = self._log_of(why.place, seen) - (math.log(size_prior(why.place)) if why.is_seen else 0.0)
        by_chance = math.log(CHANCE[self.failed.failure.policy]) + there
        return self._named * ratio(by_chance - why.log_of_cause) >= SURELY * MOST_ODDS

    def _odds_at(
        self, places: Sequence[Place], cause: Place, covered: int, others: Sequence[Group]
    ) -> tuple[float, Certainty | None]:
        """Return the same of sources at some places, and where chance was seen, however certain it is."""
        usual = CHANCE[self.failed.failure.policy]
        if usual == 0.0:
            return 0.0, None
        best, place, is_seen, seen = self._likeliest(places, covered, others)
        by_chance = math.log(usual) + best
        by_cause = math.log(size_prior(cause)) + self._besides(parts_of(cause), others, math.log(usual * NEW_CAUSE))
        return self._named * ratio(by_chance - by_cause), Certainty(place, is_seen, seen, by_cause)

    def is_excluded(self, cause: Place, covered: int, others: Sequence[Group]) -> bool:
        """Return whether a cause may be believed beside chance; the arguments are those of `odds`."""
        if self.failed.blames:
            return self.odds(cause, covered, others) <= MOST_CHANCE
        of_one, _ = self._odds_at([(number,) for number in cause], cause, covered, others)
        most_of_one = MOST_OF_ONE[self.usual >= 1.0] if len(cause) == 1 else MOST_OF_PART
        more = self._more_often
        return more * of_one <= most_of_one and more * self.odds(cause, covered, others) <= MOST_UNNAMED

    def lone(self, failures: int) -> tuple[int, float]:
        """Return the bits of those of these failures that alone may be chance, and how likely that is; or no bits."""
        lone = LONE * self.usual
        return (failures, lone) if not self.failed.blames and lone > OTHER_CAUSE else (0, OTHER_CAUSE)

    def rivals(self, cause: Place, covered: int, others: Sequence[Group]) -> list[Rival]:
        """Return the places where chance may be in the way of a cause of several conditions; the arguments as above."""
        if self.failed.blames or len(cause) == 1 or not CHANCE[self.failed.failure.policy]:
            return []
        failures = covered | sum(group.bits for group in others)
        lexicon, more = self.evidence.lexicon, math.log(self._more_often)
        found = []
        for place in [*((number,) for number in cause), cause]:
            odds, most = (
                (self._odds_at([place], cause, covered, others)[0], MOST_OF_PART)
                if len(place) == 1
                else (self.odds(cause, covered, others), MOST_UNNAMED)
            )
            failed, passed = (failures & self._failures_at(place)).bit_count(), self.passed_at(place)
            often, seldom = SOMEWHERE_RATE
            seen = often + seldom + failed + passed
            rates = math.log((often + failed) / seen), math.log((seldom + passed) / seen)
            conditions = tuple(map(lexicon.condition, place))
            found.append(Rival(conditions, math.log(odds / most) + more, *rates))
        return found

    def odds_beyond(self, others: Sequence[Group], beyond: int, is_named: bool) -> float:
        """Return how likelier chance made the failures at which a limit would begin earlier, than that it does.

        A cause is known already, and needs no other one to begin earlier.

        Args:
            others: Failures that look the same and that neither the limit nor any confirmed dead end explains.
            beyond: Bits of those at which it would begin earlier.
            is_named: Whether their message names the parameter of the limit.
        """
        usual = CHANCE[self.failed.failure.policy]
        if usual == 0.0:
            return 0.0
        satisfying = self.evidence.reasons[self.failed.failure.reason].satisfying
        places = [(), *((number,) for number, bits in satisfying.items() if not beyond & ~bits)]
        by_chance = math.log(usual * NEW_CAUSE) + self._best(places, beyond, others)
        by_cause = self._besides(places, others, math.log(usual * NEW_CAUSE))
        return (NAMES_ITS_CAUSE if is_named else 1.0) * ratio(by_chance - by_cause)

    def often(self, failures: int) -> tuple[int, float]:
        """Return the bits of the failures where chance strikes most likely, and its rate there; all in vain: no bits.

        Args:
            failures: Bits of those that look the same and that no confirmed dead end explains.
        """
        if not self.certain:
            return 0, 0.0
        key = (self.failed.failure.reason, self.failed.place, self.certain, failures)
        if key not in self.evidence.often:
            self.evidence.often[key] = self._often(failures)
        return self.evidence.often[key]

    def _often(self, failures: int) -> tuple[int, float]:
        group = (Group(failures, OUT_OF_THE_QUESTION),)
        seen = Seen(failures, 0, group, self.evidence.reached(self.failed.failure.phase))
        place = max(((), *self._where_it_was_seen), key=lambda each: (self._log_of(each, seen), each))
        (often, seldom), there = (SOMEWHERE_RATE if place else EVERYWHERE_RATE), failures & self._failures_at(place)
        passed = self.passed_at(place) if place else self.evidence.reached(self.failed.failure.phase)
        return there, (often + there.bit_count()) / (often + there.bit_count() + seldom + passed)

    def odds_of_repeating(self, times: int) -> float:
        """Return the same where nothing is known but that so many launches of the same conditions all failed."""
        usual = CHANCE[self.failed.failure.policy]
        return self._named * usual * math.exp(log_likelihood(times, 0, SOMEWHERE_RATE))

    @property
    def usual(self) -> float:
        """How much likelier than a cause a source is, for what is confirmed; 0: it knows no chance."""
        return CHANCE[self.failed.failure.policy] * self._more_often

    @property
    def _more_often(self) -> float:
        """How much more often the reason comes and goes than others with its policy."""
        usual = CHANCE[self.failed.failure.policy]
        return COMES_AND_GOES.get(self.failed.failure.reason, usual) / usual if usual else 1.0

    @property
    def _named(self) -> float:
        return NAMES_ITS_CAUSE if self.failed.blames else 1.0

    def _besides(self, parts: Iterable[Place], others: Sequence[Group], usual: float) -> float:
        """Return how likely the other failures are beside the cause (its logarithm): by other causes, or by chance."""
        causes = sum(group.log_of(group.bits) for group in others)
        return max(causes, usual + self._best(parts, 0, others)) if others else 0.0

    def _best(self, parts: Iterable[Place], covered: int, others: Sequence[Group]) -> float:
        """Return how likely chance makes just these failures where that fits best, times how likely it strikes there.

        As a logarithm, compared with a single condition that is a cause.
        """
        return self._likeliest(parts, covered, others)[0]

    def _likeliest(
        self, parts: Iterable[Place], covered: int, others: Sequence[Group]
    ) -> tuple[float, Place, bool, Seen]:
        """Return the same, with the place, whether chance was seen there, and what a source is to make."""
        failures = covered | sum(group.bits for group in others)
        seen = Seen(failures, covered, others, self.evidence.reached(self.failed.failure.phase))
        where: Place = ()
        best, is_seen = -math.inf, False
        for place in parts:
            if (found := self._log_of(place, seen, best)) > best:
                best, where = found, place
        for place, (there, passed) in zip(self._where_it_was_seen, self._seen_there, strict=True):
            if (found := seen.log_at(there, passed, best)) > best:
                best, where, is_seen = found, place, True
        return best, where, is_seen, seen

    def _log_of(self, place: Place, seen: Seen, at_least: float = -math.inf) -> float:
        """Of a source that strikes at a place; what fails elsewhere has other causes, or is chance as well."""
        if not place:
            return log_of_everywhere(seen.failures.bit_count(), seen.everywhere) - math.log(NEW_CAUSE)
        usual = math.log(size_prior(place))
        return usual + seen.log_at(self._failures_at(place), self.passed_at(place), at_least - usual)

    @cached_property
    def _where_it_was_seen(self) -> tuple[Place, ...]:
        """Single conditions with which chance was seen."""
        satisfying = self.evidence.reasons[self.failed.failure.reason].satisfying
        return tuple((number,) for number, bits in satisfying.items() if bits & self.certain)

    @property
    def _seen_there(self) -> list[tuple[int, int]]:
        """Of these conditions: bits of the failures with it, and how many launches came further with it."""
        key = (self.failed.failure.reason, self.failed.place, self.certain)
        if key not in self.evidence.seen_by_chance:
            found = [(self._failures_at(place), self.passed_at(place)) for place in self._where_it_was_seen]
            self.evidence.seen_by_chance[key] = found
        return self.evidence.seen_by_chance[key]

    def _failures_at(self, place: Place) -> int:
        satisfying, found = self.evidence.reasons[self.failed.failure.reason].satisfying, -1
        for number in place:
            found &= satisfying[number]
        return found

    def passed_at(self, place: Place) -> int:
        """Return how many launches came further where the conditions hold."""
        reason, at = self.failed.failure.reason, self.failed.place
        key = (reason, at, place)
        if key not in self.evidence.counts:
            passed, found = self.evidence.passed(at, reason), -1
            for number in place:
                found &= passed(number)
            self.evidence.counts[key] = found.bit_count()
        return self.evidence.counts[key]


def parts_of(cause: Place) -> list[Place]:
    """Return the places within a cause at which a source may strike.

    Of a small cause all parts. Of a whole assignment, which is looked at where nothing small is left, everywhere, where
    one or two of its conditions hold, and just there: it has too many parts to look at each.
    """
    if len(cause) <= LARGEST:
        return [part for size in range(len(cause) + 1) for part in combinations(cause, size)]
    return [*(part for size in range(LARGEST) for part in combinations(cause, size)), cause]
