"""What may have caused a failure: the conjunctions that no pass contradicts, weighed against each other.

Three things make a conjunction likely: it is small, the message blames its parameters, and it covers other failures
of the same reason (that several of them have different causes is unlikely). The weights are shares of one: what is
left to the others says how far the best explanation may be believed, and which experiment would tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.deadends.alive import Alive
from agent.deadends.dead_end import DeadEnd
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.implied import Weighed
from agent.deadends.kept import Weighing
from agent.deadends.prior import OTHER_CAUSE, size_prior
from agent.deadends.strikes import folded
from search_spaces import Conjunction

PLENTY = 10
"""Failures that one or two conditions cover from which only these and one more are looked at."""
MOST_MISSED = -300.0
"""Logarithm of what missing failures makes of a weight at most: it is out of the question anyway."""
BLAMED_EXACTLY, BLAMED_AND_MORE, BLAMED_IN_PART, NOT_BLAMED = 20.0, 10.0, 0.5, 0.1
"""What a message's blames make of a conjunction over: just these parameters, these and others, some, none of them."""
NEEDLESS = 0.5
"""How likely a failure has another cause where one that is suspected of others explains it as well."""
_LOG_OTHER_CAUSE, _LOG_NEEDLESS = math.log(OTHER_CAUSE), math.log(NEEDLESS)
LEAST_KEPT = 0.0005
"""Share below which an explanation is not remembered."""
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


@dataclass(frozen=True, slots=True)
class Often:
    """Failures that look the same and more often than others have a cause of their own, or none."""

    bits: int = 0
    """Of these failures."""
    rate: float = OTHER_CAUSE
    """How often."""

    needless: int = 0
    """Bits of those that a cause explains which others need in any case."""

    def sparing(self, other: Often) -> Often:
        """Return the same with what hardly needs this cause for another reason."""
        return Often(self.bits | other.bits, max(self.rate, other.rate), self.needless | other.needless)

    def gain(self, covered: int) -> float:
        """Return the logarithm of how much likelier a cause is that explains the failures with these bits."""
        needless = (covered & self.needless).bit_count()
        often = (covered & self.bits & ~self.needless).bit_count()
        rare = covered.bit_count() - often - needless
        return -rare * _LOG_OTHER_CAUSE - often * math.log(self.rate) - needless * _LOG_NEEDLESS


USUAL = Often()
"""Where nothing is known of other causes."""

Counted = tuple[tuple[int, ...], int, float]
"""Conditions, how many failures they cover, and the logarithm of what that makes of their weight."""


def explanations(
    failed: Failed,
    evidence: Evidence,
    unexplained: int,
    strikes: Sequence[DeadEnd] | None = None,
    often: Often = USUAL,
    token: int = 0,
) -> list[Explanation]:
    """Return what may have caused a failure, likeliest first; empty where passes contradict everything.

    Args:
        failed: The failure.
        evidence: What the study saw.
        unexplained: Bits of the failures that may have the same cause and that no confirmed dead end covers.
        strikes: Confirmed dead ends: what differs only in them, or in values that never run, is the same. None: it is
            not.
        often: What hardly needs the same cause.
        token: Stands for what the strikes forbid.
    """
    weighing = evidence.kept.of(failed.failure.reason, failed.index)
    key = (unexplained, often)
    total, possible = weighing.answer(
        ("possible", *key), lambda: _possible(failed, evidence, weighing, unexplained, often)
    )
    if strikes is None:
        return weighing.answer(("explained", *key), lambda: _shares(possible, total, evidence))
    beside = ("explained", *key, token, evidence.num_values, evidence.num_failed(failed.failure.reason))
    known = evidence.kept.dead_beside(token, evidence.num_values)
    return weighing.answer(beside, lambda: _shares(folded(possible, strikes, evidence, failed, known), total, evidence))


def _shares(kept: Sequence[Weighed], total: float, evidence: Evidence) -> list[Explanation]:
    kept = sorted(kept, key=lambda row: -row[0])
    return [
        Explanation(tuple(map(evidence.lexicon.condition, numbers)), numbers, weight / total, support)
        for rank, (weight, numbers, support) in enumerate(kept)
        if rank == 0 or weight / total >= LEAST_KEPT
    ]


def _possible(
    failed: Failed, evidence: Evidence, weighing: Weighing, unexplained: int, often: Often
) -> tuple[float, list[Weighed]]:
    """Return the sum of all weights, and the causes without those that say no more than others in this space."""
    question = ("counted", unexplained, often)
    counted = weighing.answer(question, lambda: _counted(failed, evidence, weighing, unexplained, often))
    weighed = _weighed(counted, failed, evidence)
    if weighed and len(weighed[0][1]) == 2:
        company = _families(_with_company(weighed[0][1], failed, evidence), failed, evidence, unexplained, often)
        weighed = _weighed([*counted, *company], failed, evidence)
    return sum(weight for weight, _, _ in weighed), evidence.implications.folded(weighed)


def _counted(failed: Failed, evidence: Evidence, weighing: Weighing, unexplained: int, often: Often) -> list[Counted]:
    """Return the conjunctions that nothing contradicts, with what they cover."""
    alive = Alive(failed, evidence)
    weighing.stand(alive.small)
    counted = _families(alive.small, failed, evidence, unexplained, often)
    if failed.blames:
        counted += _families(alive.with_named(), failed, evidence, unexplained, often)
    if max((support for _, support, _ in counted), default=0) < PLENTY:
        triples = alive.triples()
        weighing.stand(triples)
        counted += _families(triples, failed, evidence, unexplained, often)
    if not counted:
        everything = _everything(failed, evidence)
        weighing.stand(everything)
        counted = [(conditions, 1, often.gain(1 << failed.index)) for conditions in everything]
    return counted


def beside_chance(found: Sequence[Explanation], odds: float) -> tuple[Explanation, ...]:
    """Return the explanations with their shares of all there is, where chance has these odds against the first one."""
    against_all = odds * found[0].share
    return tuple(replace(each, share=each.share / (1 + against_all)) for each in found) if odds else tuple(found)


def _weighed(counted: list[Counted], failed: Failed, evidence: Evidence) -> list[Weighed]:
    most = max((gain for _, _, gain in counted), default=0.0)
    weighed = [
        (_weight(failed, evidence, conditions) * math.exp(max(gain - most, MOST_MISSED)), conditions, support)
        for conditions, support, gain in counted
    ]
    return sorted(weighed, key=_order(evidence))


def _order(evidence: Evidence) -> Callable[[Weighed], tuple[float, int, tuple[str, ...]]]:
    text = evidence.lexicon.text
    return lambda row: (-row[0], len(row[1]), tuple(map(text, row[1])))


def _everything(failed: Failed, evidence: Evidence) -> list[tuple[int, ...]]:
    """The whole assignment, where nothing smaller is left: it explains this launch and no other."""
    conditions = tuple(min(group, key=evidence.lexicon.width) for group in failed.conditions)
    is_contradicted = evidence.against(conditions, failed.place, failed.failure.reason)
    return [] if not conditions or is_contradicted else [conditions]


def _families(
    alive: list[tuple[int, ...]], failed: Failed, evidence: Evidence, unexplained: int, often: Often
) -> list[Counted]:
    """Keep one conjunction of those that differ in thresholds alone: covering the most failures, claiming the least."""
    lexicon, reason = evidence.lexicon, failed.failure.reason
    satisfying, own = evidence.reasons[reason].satisfying, 1 << failed.index
    best: dict[tuple[int, ...], tuple[tuple[int, ...], int, int, int]] = {}
    for conditions in alive:
        bits = unexplained
        for number in conditions:
            bits &= satisfying[number]
        if bits != own:
            bits = evidence.supporting(conditions, reason) & unexplained
        support, width = max(1, bits.bit_count()), sum(map(lexicon.width, conditions))
        family = tuple(map(lexicon.family, conditions))
        known = best.get(family)
        if known is None or (-support, width) < (-known[2], known[3]):
            best[family] = (conditions, bits, support, width)
    return [(conditions, support, often.gain(bits or own)) for conditions, bits, support, _ in best.values()]


def _weight(failed: Failed, evidence: Evidence, conditions: tuple[int, ...]) -> float:
    """Return the weight of an explanation, whatever it covers."""
    weight = size_prior(conditions)
    for number in conditions:
        weight *= evidence.lexicon.weight(number)
    if not failed.blames:
        return weight
    return weight * blame_factor(failed.blames, set(map(evidence.lexicon.parameter, conditions)))


def blame_factor(blames: frozenset[str], names: set[str]) -> float:
    """Return what a message's blames make of a cause over these parameters."""
    if names == blames:
        return BLAMED_EXACTLY
    if names > blames:
        return BLAMED_AND_MORE
    return BLAMED_IN_PART if names & blames else NOT_BLAMED


def _with_company(conditions: tuple[int, ...], failed: Failed, evidence: Evidence) -> list[tuple[int, ...]]:
    """Return the conjunctions of three around the best of two: what all its failures had in common may belong to it."""
    named = failed.blames | {evidence.lexicon.parameter(number) for number in conditions}
    others = zip(failed.seen.visible, failed.conditions, strict=True)
    return [(*conditions, number) for name, group in others if name not in named for number in group]
