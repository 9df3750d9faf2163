"""What may have caused a failure: the conjunctions that no pass contradicts, weighed against each other.

Three things make a conjunction likely: it is small, the message blames its parameters, and it covers other failures
of the same reason (that several of them have different causes is unlikely). The weights are shares of one: what is
left to the others says how far the best explanation may be believed, and which experiment would tell them apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.deadends.evidence import Evidence, Failed
from agent.reasons import Policy
from search_spaces import Conjunction

SIZE_PRIOR = (1.0, 0.18, 0.027)
"""Of one condition, two, three: each further one multiplies the conjunctions there are, and few of them are real."""
OTHER_CAUSE = 0.05
"""How likely one more failure of the same reason has a cause of its own."""
MOST_COUNTED = 10
"""Failures beyond which more of them make no explanation likelier."""
BLAMED_EXACTLY, BLAMED_AND_MORE, BLAMED_IN_PART, NOT_BLAMED = 30.0, 10.0, 0.5, 0.1
"""What a message's blames make of a conjunction over: just these parameters, these and others, some, none of them."""
CHANCE = {Policy.DEAD_AT_ONCE: 0.0, Policy.CONFIRM_ONCE: 0.1, Policy.RETRY_ONCE: 0.3}
"""Odds that a first failure of this policy was chance and would not repeat."""
SEEN_FLAKY = 5.0
"""By how much those odds rise for a reason of which one failure did not repeat."""
LEAST_SHARE = 0.02
"""Explanations with a smaller share are not worth an experiment and do not count as suspects."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One possible cause of a failure."""

    conditions: Conjunction
    """In the order of the space's parameters."""
    numbers: tuple[int, ...]
    """The same, as the lexicon numbers them."""
    share: float
    """Of all explanations of this failure together."""
    support: int
    """Failures of the reason that it covers, this one included."""


def explanations(failed: Failed, evidence: Evidence, unexplained: int) -> list[Explanation]:
    """Return what may have caused a failure, likeliest first; empty where passes contradict everything.

    Args:
        failed: The failure.
        evidence: What the study saw.
        unexplained: Bits of the failures of the reason that no confirmed dead end covers.
    """
    unexplained &= evidence.reasons[failed.failure.reason].alike(failed)
    alive = [*_alive(failed, evidence, 1), *_alive(failed, evidence, 2)] or list(_alive(failed, evidence, 3))
    alive = alive or _everything(failed, evidence)
    counted = _families(alive, failed, evidence, unexplained)
    weighed = [(_weight(failed, evidence, each, support), each, support) for each, support in counted]
    weighed.sort(key=lambda row: (-row[0], len(row[1]), _text(evidence, row[1])))
    total = sum(weight for weight, _, _ in weighed)
    if weighed:
        total += _company(failed, evidence, weighed[0], unexplained) + _chance(failed, evidence, weighed, unexplained)
    return [
        Explanation(tuple(map(evidence.lexicon.condition, numbers)), numbers, weight / total, support)
        for weight, numbers, support in weighed
    ]


def _alive(failed: Failed, evidence: Evidence, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the conjunctions of this size that the failure satisfies and no comparable pass does."""
    rung = failed.seen.rung
    for groups in itertools.combinations(failed.conditions, size):
        for conditions in itertools.product(*groups):
            if not evidence.against(conditions, rung):
                yield conditions


def _everything(failed: Failed, evidence: Evidence) -> list[tuple[int, ...]]:
    """The whole assignment, where nothing smaller is left: it explains this launch and no other."""
    conditions = tuple(min(group, key=evidence.lexicon.width) for group in failed.conditions)
    return [] if not conditions or evidence.against(conditions, failed.seen.rung) else [conditions]


def _families(
    alive: list[tuple[int, ...]], failed: Failed, evidence: Evidence, unexplained: int
) -> list[tuple[tuple[int, ...], int]]:
    """Keep one conjunction of those that differ in thresholds alone: covering the most failures, claiming the least."""
    lexicon, reason = evidence.lexicon, failed.failure.reason
    best: dict[tuple[object, ...], tuple[tuple[int, ...], int, int]] = {}
    for conditions in alive:
        support = (evidence.supporting(conditions, reason) & unexplained).bit_count()
        width = sum(map(lexicon.width, conditions))
        family = tuple((each.parameter, each.comparison) for each in map(lexicon.condition, conditions))
        known = best.get(family)
        if known is None or (-support, width) < (-known[1], known[2]):
            best[family] = (conditions, support, width)
    return [(conditions, support) for conditions, support, _ in best.values()]


def _weight(failed: Failed, evidence: Evidence, conditions: tuple[int, ...], support: int) -> float:
    weight = SIZE_PRIOR[min(len(conditions), len(SIZE_PRIOR)) - 1]
    for number in conditions:
        weight *= evidence.lexicon.weight(number)
    weight *= OTHER_CAUSE ** (1 - min(support, MOST_COUNTED))
    return weight * _blame_factor(failed, {evidence.lexicon.condition(number).parameter for number in conditions})


def _blame_factor(failed: Failed, names: set[str]) -> float:
    if not failed.blames:
        return 1.0
    if names == failed.blames:
        return BLAMED_EXACTLY
    if names > failed.blames:
        return BLAMED_AND_MORE
    return BLAMED_IN_PART if names & failed.blames else NOT_BLAMED


def _chance(
    failed: Failed, evidence: Evidence, weighed: Sequence[tuple[float, tuple[int, ...], int]], unexplained: int
) -> float:
    """Return the weight of chance: a failure of this reason may strike any launch, as often as it struck so far."""
    alone = sum(weight * OTHER_CAUSE ** (min(support, MOST_COUNTED) - 1) for weight, _, support in weighed)
    number = min(unexplained.bit_count(), MOST_COUNTED)
    rate = unexplained.bit_count() / (len(evidence.passes) + unexplained.bit_count())
    odds = CHANCE[failed.failure.policy]
    if evidence.reasons[failed.failure.reason].flaky:
        odds *= SEEN_FLAKY
    return odds * alone * max(rate / OTHER_CAUSE, 1.0) ** (number - 1)


def _company(failed: Failed, evidence: Evidence, best: tuple[float, tuple[int, ...], int], unexplained: int) -> float:
    """Return the weight of three conditions where the best explanation has two: they are not listed one by one.

    What every covered failure had in common may belong to the cause.
    """
    weight, conditions, support = best
    if len(conditions) != 2 or failed.blames:
        return 0.0
    named = {evidence.lexicon.condition(number).parameter for number in conditions}
    total = 0.0
    for name, group in zip(failed.seen.visible, failed.conditions, strict=True):
        if name not in named:
            own = min(group, key=evidence.lexicon.width)
            shared = evidence.supporting((*conditions, own), failed.failure.reason) & unexplained
            total += OTHER_CAUSE ** (min(support, MOST_COUNTED) - min(shared.bit_count(), MOST_COUNTED))
    return total * weight * SIZE_PRIOR[2] / SIZE_PRIOR[1]


def _text(evidence: Evidence, conditions: tuple[int, ...]) -> str:
    return " ".join(str(evidence.lexicon.condition(number)) for number in conditions)
