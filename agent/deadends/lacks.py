"""What a cause may lack: one more condition, without which it failed only where chance may have made all of that.

`chunked_prefill_size ≥ 8192` failed eight times, three of them without `mem_fraction_percent ≥ 70`. All three have
`expert_parallel = false` in common, where such failures were seen to come and go: then the longer cause and chance
there say as much. So the failures that alone keep a cause short are weighed together, and one more launch without the
condition, where chance was not seen, tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from agent.deadends.chance import NAMES_ITS_CAUSE, Chance
from agent.deadends.dead_end import DeadEnd
from agent.deadends.explain import blame_factor
from agent.deadends.likelihood import SOMEWHERE_RATE, Group, log_likelihood
from agent.deadends.prior import LARGEST, OTHER_CAUSE, size_prior
from agent.deadends.strikes import is_dead_without
from search_spaces import Condition, Scalar

MOST_LACKING = 0.0005
"""How likely a longer cause with chance beside it is, compared with a cause, up to which this one is believed."""
BEYOND_LARGEST = 0.1
"""How likely a cause has one condition more than those that are looked for: it may as well be another one of theirs."""
UNSEEN = 0.01
"""How likely chance strikes at a place where it was not seen."""


@dataclass(frozen=True, slots=True)
class Lack:
    """A condition that a cause may lack."""

    condition: Condition
    places: tuple[tuple[Condition, float, float], ...]
    """Where chance may have made what fails without it, likeliest first: how much likelier than is believed that is
    (logarithm), and what one more failure there would add to it: negative."""

    @property
    def excess(self) -> float:
        """Logarithm of how likely the condition is lacking over what is believed: positive."""
        return _log_sum([log for _, log, _ in self.places])

    def after_failure(self, point: Mapping[str, Scalar]) -> float:
        """Return the same once the cause failed at a point, too."""
        if self.condition.matches(point):
            return self.excess
        by_other = math.log(OTHER_CAUSE)
        return _log_sum([log + (more if at.matches(point) else by_other) for at, log, more in self.places])


def worth_beside(lacks: Sequence[Lack], point: Mapping[str, Scalar]) -> float:
    """Return by how much one more failure at a point brings a cause nearer to being believed (logarithm).

    Args:
        lacks: All that the cause may lack.
        point: A complete assignment inside of the cause.
    """
    before, after = (each.excess for each in lacks), (each.after_failure(point) for each in lacks)
    return max([0.0, *before]) - max([0.0, *after])


def is_excluded(
    chance: Chance, strikes: Sequence[DeadEnd] | None, cause: tuple[int, ...], covered: int, others: Sequence[Group]
) -> bool:
    """Return whether chance made neither all failures of a cause nor those that alone keep it short: as `lacks_of`."""
    return chance.is_excluded(cause, covered, others) and not lacks_of(chance, strikes, cause, covered, others)


def lacks_of(
    chance: Chance, strikes: Sequence[DeadEnd] | None, cause: tuple[int, ...], covered: int, others: Sequence[Group]
) -> list[Lack]:
    """Return what a cause may lack, likeliest first: not that without which all is dead anyway.

    Args:
        chance: Weighs chance against the cause.
        strikes: Confirmed dead ends; None: none are known.
        cause: Conditions that no pass satisfies, as the lexicon numbers them.
        covered: Bits of the failures that look the same and that the cause explains.
        others: Those that neither it nor any confirmed dead end explains.
    """
    if not chance.usual:
        return []
    found = _Lacking(chance, sum(group.bits for group in others)).of(cause, covered)
    evidence, rest = chance.evidence, frozenset(cause)
    alive = [each for number, each in found.items() if not is_dead_without(rest, number, strikes or (), evidence)]
    return sorted(alive, key=lambda each: (-each.excess, str(each.condition)))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where chance may strike."""

    number: int
    """Of the condition."""
    satisfying: int
    """Bits of the failures with it."""
    there: int
    """How many failures with it no cause explains."""
    passed: int
    """How many launches came further with it."""
    log: float
    """How likely chance strikes there (logarithm)."""

    def of_one_more(self, failures: int) -> float:
        """Return how likely one more launch fails there after so many that did (logarithm)."""
        often, seldom = SOMEWHERE_RATE
        failed = often + self.there + failures
        return math.log(failed / (failed + seldom + self.passed))


@dataclass(frozen=True)
class _Lacking:
    """Looks for what the cause of a failure may lack."""

    chance: Chance
    others: int
    """Bits of the failures that look the same and that no cause explains."""
    _by_chance: dict[int, list[tuple[int, float, float]]] = field(default_factory=dict)

    def of(self, cause: tuple[int, ...], bits: int) -> dict[int, Lack]:
        """Return what a cause may lack, where these failures look the same and are explained by it."""
        seen, lexicon = self.chance.evidence.reasons[self.chance.failed.failure.reason], self.chance.evidence.lexicon
        names, places, found = set(map(lexicon.parameter, cause)), self._places(), {}
        for number, satisfying in seen.satisfying.items():
            without = bits & ~satisfying
            if without and bits != without and lexicon.parameter(number) not in names:
                log = self._log_with(cause, number, bits & satisfying, without) - math.log(MOST_LACKING)
                terms = [(at, log + by, more) for at, by, more in self._made(without, places)]
                if terms and _log_sum([by for _, by, _ in terms]) > 0.0:
                    terms.sort(key=lambda term: (-term[1], term[0]))
                    where = tuple((lexicon.condition(at), by, more) for at, by, more in terms)
                    found[number] = Lack(lexicon.condition(number), where)
        return found

    def _log_with(self, cause: tuple[int, ...], number: int, inside: int, without: int) -> float:
        """Return how likely a condition belongs to the cause, by its form and by what the messages name (logarithm)."""
        seen, lexicon = self.chance.evidence.reasons[self.chance.failed.failure.reason], self.chance.evidence.lexicon
        names = set(map(lexicon.parameter, cause))
        blaming = {each: those for each, those in seen.blaming.items() if each and those & inside}
        further = {*names, lexicon.parameter(number)}
        blamed = max((blame_factor(each, further) / blame_factor(each, names) for each in blaming), default=1.0)
        naming = sum((those & without).bit_count() for those in blaming.values())
        return math.log(self._form(cause, number) * blamed) + naming * math.log(NAMES_ITS_CAUSE)

    def _form(self, cause: tuple[int, ...], number: int) -> float:
        """Return how likely the form of a cause with a condition more is, or with it in the place of some others."""
        failed, lexicon = self.chance.failed, self.chance.evidence.lexicon
        longer = size_prior((*cause, number)) / size_prior(cause) if len(cause) < LARGEST else BEYOND_LARGEST
        found = [longer * lexicon.weight(number)]
        for size in range(len(cause)) if len(cause) <= LARGEST else ():
            for part in combinations(cause, size):
                if not self.chance.evidence.against((*part, number), failed.place, failed.failure.reason):
                    found.append(self._prior((*part, number)) / self._prior(cause))
        return max(found)

    def _prior(self, conditions: tuple[int, ...]) -> float:
        return size_prior(conditions) * math.prod(map(self.chance.evidence.lexicon.weight, conditions))

    def _places(self) -> list[_Place]:
        usual, found = self.chance.usual, []
        for number, satisfying in self.chance.evidence.reasons[self.chance.failed.failure.reason].satisfying.items():
            there, passed = (self.others & satisfying).bit_count(), self.chance.passed_at((number,))
            elsewhere = (self.others & ~satisfying).bit_count() * math.log(OTHER_CAUSE)
            log = log_likelihood(there, passed, SOMEWHERE_RATE) + elsewhere
            found.append(_Place(number, satisfying, there, passed, log))
        total = _log_sum([each.log for each in found if each.there])
        shares = (math.exp(each.log - total) if each.there else 0.0 for each in found)
        return [
            replace(each, log=math.log(usual * (UNSEEN + share))) for each, share in zip(found, shares, strict=True)
        ]

    def _made(self, bits: int, places: list[_Place]) -> list[tuple[int, float, float]]:
        """Return where chance may have made all of these failures, how likely, and what one more there would add."""
        if bits not in self._by_chance:
            (often, seldom), number = SOMEWHERE_RATE, bits.bit_count()
            self._by_chance[bits] = [
                (
                    each.number,
                    each.log + log_likelihood(number, 0, (often + each.there, seldom + each.passed)),
                    each.of_one_more(number),
                )
                for each in places
                if not bits & ~each.satisfying
            ]
        return self._by_chance[bits]


def _log_sum(logs: Sequence[float]) -> float:
    most = max(logs, default=-math.inf)
    return most + math.log(sum(math.exp(log - most) for log in logs)) if logs else most
