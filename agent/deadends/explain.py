"""What may have caused a failure: the conjunctions that no pass contradicts, weighed against each other.

Three things make a conjunction likely: it is small, the message blames its parameters, and it covers other failures
of the same reason (that several of them have different causes is unlikely). The weights are shares of one: what is
left to the others says how far the best explanation may be believed, and which experiment would tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.deadends.alive import Alive
from agent.deadends.dead_end import DeadEnd
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.implied import Weighed
from agent.deadends.prior import OTHER_CAUSE, size_prior
from agent.deadends.strikes import folded
from search_spaces import Conjunction

PLENTY = 10
"""Failures that one or two conditions cover from which only these and one more are looked at."""
MOST_MISSED = 100
"""Failures beyond which missing more of them makes no explanation less likely: it is out of the question anyway."""
BLAMED_EXACTLY, BLAMED_AND_MORE, BLAMED_IN_PART, NOT_BLAMED = 30.0, 10.0, 0.5, 0.1
"""What a message's blames make of a conjunction over: just these parameters, these and others, some, none of them."""
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


def explanations(
    failed: Failed, evidence: Evidence, unexplained: int, strikes: Sequence[DeadEnd] | None = None
) -> list[Explanation]:
    """Return what may have caused a failure, likeliest first; empty where passes contradict everything.

    Args:
        failed: The failure.
        evidence: What the study saw.
        unexplained: Bits of the failures that may have the same cause and that no confirmed dead end covers.
        strikes: Confirmed dead ends: what differs only in them, or in values that never run, is the same. None: it is
            not.
    """
    alive = Alive(failed, evidence)
    counted = _families(alive.small, failed, evidence, unexplained)
    if max((support for _, support in counted), default=0) < PLENTY:
        counted += _families(alive.triples(), failed, evidence, unexplained)
    counted = counted or [(conditions, 1) for conditions in _everything(failed, evidence)]
    weighed = _weighed(counted, failed, evidence)
    if weighed and len(weighed[0][1]) == 2:
        company = _with_company(weighed[0][1], failed, evidence)
        weighed = _weighed([*counted, *_families(company, failed, evidence, unexplained)], failed, evidence)
    total = sum(weight for weight, _, _ in weighed)
    kept = evidence.implications.folded(weighed)
    if strikes is not None:
        kept = folded(kept, strikes, failed.seen.rung, evidence)
    kept.sort(key=lambda row: -row[0])
    return [
        Explanation(tuple(map(evidence.lexicon.condition, numbers)), numbers, weight / total, support)
        for rank, (weight, numbers, support) in enumerate(kept)
        if rank == 0 or weight / total >= LEAST_KEPT
    ]


def beside_chance(found: Sequence[Explanation], odds: float) -> tuple[Explanation, ...]:
    """Return the explanations with their shares of all there is, where chance has these odds against the first one."""
    against_all = odds * found[0].share
    return tuple(replace(each, share=each.share / (1 + against_all)) for each in found) if odds else tuple(found)


def _weighed(counted: list[tuple[tuple[int, ...], int]], failed: Failed, evidence: Evidence) -> list[Weighed]:
    most = max((support for _, support in counted), default=0)
    weighed = [(_weight(failed, evidence, each, most - support), each, support) for each, support in counted]
    return sorted(weighed, key=_order(evidence))


def _order(evidence: Evidence) -> Callable[[Weighed], tuple[float, int, str]]:
    return lambda row: (-row[0], len(row[1]), _text(evidence, row[1]))


def _everything(failed: Failed, evidence: Evidence) -> list[tuple[int, ...]]:
    """The whole assignment, where nothing smaller is left: it explains this launch and no other."""
    conditions = tuple(min(group, key=evidence.lexicon.width) for group in failed.conditions)
    is_contradicted = evidence.against(conditions, failed.place, failed.failure.reason)
    return [] if not conditions or is_contradicted else [conditions]


def _families(
    alive: list[tuple[int, ...]], failed: Failed, evidence: Evidence, unexplained: int
) -> list[tuple[tuple[int, ...], int]]:
    """Keep one conjunction of those that differ in thresholds alone: covering the most failures, claiming the least."""
    lexicon, reason = evidence.lexicon, failed.failure.reason
    satisfying, own = evidence.reasons[reason].satisfying, 1 << failed.index
    best: dict[tuple[int, ...], tuple[tuple[int, ...], int, int]] = {}
    for conditions in alive:
        bits = unexplained
        for number in conditions:
            bits &= satisfying[number]
        support = 1 if bits == own else (evidence.supporting(conditions, reason) & unexplained).bit_count()
        width = sum(map(lexicon.width, conditions))
        family = tuple(map(lexicon.family, conditions))
        known = best.get(family)
        if known is None or (-support, width) < (-known[1], known[2]):
            best[family] = (conditions, support, width)
    return [(conditions, support) for conditions, support, _ in best.values()]


def _weight(failed: Failed, evidence: Evidence, conditions: tuple[int, ...], missed: int) -> float:
    """Return the weight of an explanation that covers `missed` failures less than the one that covers most."""
    weight = size_prior(conditions) * OTHER_CAUSE ** min(missed, MOST_MISSED)
    for number in conditions:
        weight *= evidence.lexicon.weight(number)
    if not failed.blames:
        return weight
    return weight * _blame_factor(failed, {evidence.lexicon.condition(number).parameter for number in conditions})


def _blame_factor(failed: Failed, names: set[str]) -> float:
    if names == failed.blames:
        return BLAMED_EXACTLY
    if names > failed.blames:
        return BLAMED_AND_MORE
    return BLAMED_IN_PART if names & failed.blames else NOT_BLAMED


def _with_company(conditions: tuple[int, ...], failed: Failed, evidence: Evidence) -> list[tuple[int, ...]]:
    """Return the conjunctions of three around the best of two: what all its failures had in common may belong to it."""
    named = {evidence.lexicon.condition(number).parameter for number in conditions}
    others = zip(failed.seen.visible, failed.conditions, strict=True)
    return [(*conditions, number) for name, group in others if name not in named for number in group]


def _text(evidence: Evidence, conditions: tuple[int, ...]) -> str:
    return " ".join(map(evidence.lexicon.text, conditions))
