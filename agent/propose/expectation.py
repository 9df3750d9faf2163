"""What the answer of an experiment is expected to tell about the cause of a failure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agent.deadends.evidence import PHASE_ORDER
from agent.deadends.explain import LEAST_SHARE, Explanation
from agent.deadends.learn import BELIEVED, REPEATS_BY_CHANCE
from agent.deadends.suspicion import Suspicion
from agent.propose.causes import Causes
from agent.propose.history import History
from search_spaces import Scalar, matches_all

LAST_RESORT = 0.2
"""What an experiment is worth, as a share, that most likely fails by another cause: better than none."""
IN_VAIN = 0.5
"""What is left of that share after each experiment that did."""

SETTLES = 1.0
"""What it is worth, in bits, that one more failure would leave a single explanation."""


def likely_causes(suspicion: Suspicion) -> list[Explanation]:
    """Return the explanations that an experiment should tell apart."""
    return [each for each in suspicion.explanations if each.share >= LEAST_SHARE / 4]


def _causes_of(suspicion: Suspicion) -> Causes:
    return Causes([(each.conditions, each.share) for each in likely_causes(suspicion)])


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
        told = _told(suspicion, point, self._causes[id(suspicion)].share(point))
        return told * max(self._shows(suspicion, point), LAST_RESORT * IN_VAIN**in_vain) if told else 0.0

    def _shows(self, suspicion: Suspicion, point: Mapping[str, Scalar]) -> float:
        """Return how likely no other cause strikes before this one could.

        What strikes in a later phase hides nothing: coming that far is the answer.
        """
        chance = 1.0
        for other in self.history.atlas.suspicions:
            if _may_hide(other, suspicion):
                chance *= 1.0 - self._causes[id(other)].share(point)
        return chance

    @cached_property
    def _causes(self) -> dict[int, Causes]:
        return {id(each): _causes_of(each) for each in self.history.atlas.suspicions}


def _may_hide(other: Suspicion, suspicion: Suspicion) -> bool:
    mine, its = suspicion.failed, other.failed
    is_other = its.signature != mine.signature or its.failure.reason is not mine.failure.reason
    return is_other and PHASE_ORDER[its.failure.phase] <= PHASE_ORDER[mine.failure.phase]


def _told(suspicion: Suspicion, point: Mapping[str, Scalar], fails: float) -> float:
    """Return the bits that an answer tells about the cause, or whether it was chance; more where it may settle it."""
    best = suspicion.best
    purity = best.share / fails if fails > 0.0 and matches_all(best.conditions, point) else 0.0
    if best.share >= BELIEVED:  # clear what it is: left to see that it repeats
        return fails if purity >= BELIEVED else 0.0
    told = _entropy(fails if suspicion.is_repeated else fails * (1 - REPEATS_BY_CHANCE / 4))
    return told + SETTLES * best.share * purity**4


def _entropy(probability: float) -> float:
    if not 0.0 < probability < 1.0:
        return 0.0
    other = 1.0 - probability
    return -probability * math.log2(probability) - other * math.log2(other)
