"""What the answer of an experiment is expected to tell about the cause of a failure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.deadends import lacks, rivals
from agent.deadends.evidence import PHASE_ORDER
from agent.deadends.explain import LEAST_SHARE, Explanation
from agent.deadends.learn import BELIEVED
from agent.deadends.suspicion import Suspicion
from agent.propose import working
from agent.propose.causes import Causes
from agent.propose.history import History
from agent.propose.limits import reach
from search_spaces import Comparison, Condition, Scalar, matches_all

LAST_RESORT = 0.2
"""What an experiment is worth, as a share, that most likely fails by another cause: better than none."""
IN_VAIN = 0.5
"""What is left of that share after each experiment that did."""

REPEATS_BY_CHANCE = 0.5
"""How likely a failure that was chance repeats all the same."""
SETTLES = 1.0
"""What it is worth, in bits, that an answer leaves a single explanation."""


def likely_causes(suspicion: Suspicion) -> list[Explanation]:
    """Return the explanations that an experiment should tell apart, however likely chance is beside them."""
    least = LEAST_SHARE / 4 * sum(each.share for each in suspicion.explanations)
    return [each for each in suspicion.explanations if each.share >= least]


class LikelyCauses(Causes):
    """The likely causes of one failure, whose limits may begin earlier than is known."""

    def __init__(self, suspicion: Suspicion, history: History) -> None:
        self._likely = likely_causes(suspicion)
        super().__init__([(each.conditions, each.share) for each in self._likely])
        self._space = history.space
        self._passed = tuple(working.latest_working_at(history, suspicion.failed.seen.rung).values())
        self._equal = sum(bit for each, bit in self._conditions if each.comparison is Comparison.EQUAL)
        self._reach: dict[tuple[int, Condition, str], float] = {}

    def striking(self, point: Mapping[str, Scalar]) -> list[tuple[float, float]]:
        """Return the share of each cause, and how likely it strikes at a point."""
        broken = self._broken_at(point)
        return [
            (share, 0.0 if needed & broken & self._equal else self._reaches(index, needed & broken, point))
            for index, (needed, share) in enumerate(self._needed)
        ]

    def share(self, point: Mapping[str, Scalar]) -> float:
        """Return the share of the causes that are expected to strike at a point."""
        return sum(share * chance for share, chance in self.striking(point))

    def _reaches(self, index: int, broken: int, point: Mapping[str, Scalar]) -> float:
        """Return how likely the limits of a cause that a point stays within begin earlier than is known."""
        chance = 1.0
        for condition in (each for each, bit in self._conditions if bit & broken) if broken else ():
            key = (index, condition, repr(point[condition.parameter]))
            if key not in self._reach:
                self._reach[key] = self._reach_of(index, condition, point[condition.parameter])
            chance *= self._reach[key]
        return chance

    def _reach_of(self, index: int, condition: Condition, value: Scalar) -> float:
        others = tuple(each for each in self._likely[index].conditions if each != condition)
        passed = (point[condition.parameter] for point in self._passed if matches_all(others, point))
        return reach(condition, value, self._space.parameters[condition.parameter].domain, passed)


@dataclass(frozen=True)
class Expectation:
    """What a study expects of launches that were not run yet."""

    history: History

    def worth(self, suspicion: Suspicion, point: Mapping[str, Scalar], in_vain: int) -> float:
        """Return the bits that a launch of a point is expected to tell about a suspicion.

        Args:
            suspicion: A failure that is not explained yet.
            point: A complete assignment.
            in_vain: How many experiments on this failure ended by another cause.
        """
        told = _told(suspicion, point, self._causes[id(suspicion)].striking(point))
        return told * max(self._shows(suspicion, point), LAST_RESORT * IN_VAIN**in_vain) if told else 0.0

    def _shows(self, suspicion: Suspicion, point: Mapping[str, Scalar]) -> float:
        """Return how likely no other cause strikes before this one could.

        What strikes in a later phase hides nothing: coming that far is the answer.
        """
        chance = 1.0
        for other in hiding(self.history, suspicion):
            chance *= 1.0 - self._causes[id(other)].share(point)
        return chance

    @cached_property
    def _causes(self) -> dict[int, LikelyCauses]:
        return {id(each): LikelyCauses(each, self.history) for each in self.history.atlas.suspicions}


def hiding(history: History, suspicion: Suspicion) -> list[Suspicion]:
    """Return the suspicions whose causes may strike before this one's could."""
    return [other for other in history.atlas.suspicions if _may_hide(other, suspicion)]


def _may_hide(other: Suspicion, suspicion: Suspicion) -> bool:
    mine, its = suspicion.failed, other.failed
    is_other = its.signature != mine.signature or its.failure.reason is not mine.failure.reason
    return is_other and PHASE_ORDER[its.failure.phase] <= PHASE_ORDER[mine.failure.phase]


def _told(suspicion: Suspicion, point: Mapping[str, Scalar], striking: Sequence[tuple[float, float]]) -> float:
    """Return the bits that an answer tells about the cause, or whether it was chance; more where it may settle it."""
    best, fails = suspicion.best, sum(share * chance for share, chance in striking)
    if best.share >= BELIEVED:  # clear what it is: left to see that it repeats
        if not matches_all(best.conditions, point):
            return (1.0 - fails) * rivals.worth_beside(suspicion.rivals, point)
        if best.share < BELIEVED * fails:
            return 0.0
        lacking = lacks.worth_beside(suspicion.lacks, point)
        return fails * (lacking + 1.0 if suspicion.is_rare or not suspicion.lacks else lacking)
    repeats = 1.0 if suspicion.is_repeated else 1.0 - REPEATS_BY_CHANCE / 4
    told = _entropy(fails * repeats) - sum(share * _entropy(chance * repeats) for share, chance in striking)
    return told + SETTLES * _settled(striking, fails)


def most_told(suspicion: Suspicion) -> float:
    """Return the bits that no experiment about a suspicion can tell more than, by the shares of its causes alone.

    Where chance is nearly certain there is nothing to tell, and no point needs to be looked at: a pass settles nothing
    then. Infinite where it is not.
    """
    causes = sum(each.share for each in suspicion.explanations)
    if causes >= 1.0 - BELIEVED:
        return math.inf
    return _entropy(causes) + SETTLES * causes


def _settled(striking: Sequence[tuple[float, float]], fails: float) -> float:
    """Return how likely an answer leaves a single explanation."""
    by_failure = max((share * chance for share, chance in striking), default=0.0) >= BELIEVED * fails
    by_pass = max((share * (1.0 - chance) for share, chance in striking), default=0.0) >= BELIEVED * (1.0 - fails)
    return by_failure * fails + by_pass * (1.0 - fails)


def _entropy(probability: float) -> float:
    if not 0.0 < probability < 1.0:
        return 0.0
    other = 1.0 - probability
    return -probability * math.log2(probability) - other * math.log2(other)
