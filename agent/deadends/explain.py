"""What may have caused a failure: the conjunctions that no pass contradicts, weighed against each other.

Three things make a conjunction likely: it is small, the message blames its parameters, and it covers other failures
of the same reason (that several of them have different causes is unlikely). The weights are shares of one: what is
left to the others says how far the best explanation may be believed, and which experiment would tell them apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.deadends.evidence import Evidence, Failed
from agent.reasons import Policy
from search_spaces import Conjunction

SIZE_PRIOR = (1.0, 0.18, 0.027)
"""Of one condition, two, three: each further one multiplies the conjunctions there are, and few of them are real."""
OTHER_CAUSE = 0.05
"""How likely one more failure of the same reason has a cause of its own."""
MOST_MISSED = 100
"""Failures beyond which missing more of them makes no explanation less likely: it is out of the question anyway."""
NEW_CAUSE = 0.003
"""How likely a cause of its own is that somebody would have to assume."""
BLAMED_EXACTLY, BLAMED_AND_MORE, BLAMED_IN_PART, NOT_BLAMED = 30.0, 10.0, 0.5, 0.1
"""What a message's blames make of a conjunction over: just these parameters, these and others, some, none of them."""
CHANCE = {Policy.DEAD_AT_ONCE: 0.0, Policy.CONFIRM_ONCE: 0.1, Policy.RETRY_ONCE: 0.3}
"""Odds that a first failure of this policy was chance and would not repeat."""
SEEN_FLAKY = 5.0
"""By how much those odds rise for a reason of which one failure did not repeat."""
NAMES_ITS_CAUSE = 0.2
"""By how much those odds fall where the message names a parameter."""
USUALLY_PASSES = 19.0
"""How rare chance failures are: in some twenty launches one is expected, in some many more, in some none."""
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


def explanations(failed: Failed, evidence: Evidence, unexplained: int, chance_odds: float = 0.0) -> list[Explanation]:
    """Return what may have caused a failure, likeliest first; empty where passes contradict everything.

    Args:
        failed: The failure.
        evidence: What the study saw.
        unexplained: Bits of the failures of the reason that no confirmed dead end covers.
        chance_odds: Odds that chance, and no condition, causes the unexplained failures of the reason.
    """
    unexplained &= evidence.reasons[failed.failure.reason].alike(failed)
    alive = [*_alive(failed, evidence, 1), *_alive(failed, evidence, 2)] or list(_alive(failed, evidence, 3))
    alive = alive or _everything(failed, evidence)
    counted = _families(alive, failed, evidence, unexplained)
    weighed = _weighed(counted, failed, evidence)
    if weighed and len(weighed[0][1]) == 2:
        company = _with_company(weighed[0][1], failed, evidence)
        weighed = _weighed([*counted, *_families(company, failed, evidence, unexplained)], failed, evidence)
    total = sum(weight for weight, _, _ in weighed) * (1.0 + chance_odds)
    return [
        Explanation(tuple(map(evidence.lexicon.condition, numbers)), numbers, weight / total, support)
        for weight, numbers, support in weighed
    ]


def chance_odds(
    causes: int, failures: int, launches: int, *, policy: Policy, is_flaky: bool, has_blames: bool
) -> float:
    """Return the odds that failures of one reason are chance, against conditions of their own.

    Chance explains them all at once, but each launch that did not fail counts against it; conditions explain each
    launch, but every further cause has to be assumed.

    Args:
        causes: How many conjunctions it takes to cover the failures.
        failures: How many there are.
        launches: How many launches came as far, these failures included.
        policy: The policy of the reason.
        is_flaky: Whether a failure of the reason is known not to have repeated.
        has_blames: Whether all their messages name parameters.
    """
    if not failures or CHANCE[policy] == 0.0:
        return 0.0
    by_chance = _log_beta(1.0 + failures, USUALLY_PASSES + launches - failures) - _log_beta(1.0, USUALLY_PASSES)
    by_causes = causes * math.log(NEW_CAUSE)
    odds = CHANCE[policy] * (SEEN_FLAKY if is_flaky else 1.0) * (NAMES_ITS_CAUSE if has_blames else 1.0)
    return odds * math.exp(max(-50.0, min(50.0, by_chance - by_causes)))


def _log_beta(first: float, second: float) -> float:
    return math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)


_Weighed = tuple[float, tuple[int, ...], int]
"""Weight, conditions, failures covered."""


def _weighed(counted: list[tuple[tuple[int, ...], int]], failed: Failed, evidence: Evidence) -> list[_Weighed]:
    most = max((support for _, support in counted), default=0)
    weighed = [(_weight(failed, evidence, each, most - support), each, support) for each, support in counted]
    return sorted(weighed, key=_order(evidence))


def _order(evidence: Evidence) -> Callable[[_Weighed], tuple[float, int, str]]:
    return lambda row: (-row[0], len(row[1]), _text(evidence, row[1]))


def _alive(failed: Failed, evidence: Evidence, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the conjunctions of this size that the failure satisfies and no comparable pass does."""
    rung, reason = failed.seen.rung, failed.failure.reason
    for groups in itertools.combinations(failed.conditions, size):
        for conditions in itertools.product(*groups):
            if not evidence.against(conditions, rung, reason):
                yield conditions


def _everything(failed: Failed, evidence: Evidence) -> list[tuple[int, ...]]:
    """The whole assignment, where nothing smaller is left: it explains this launch and no other."""
    conditions = tuple(min(group, key=evidence.lexicon.width) for group in failed.conditions)
    is_contradicted = evidence.against(conditions, failed.seen.rung, failed.failure.reason)
    return [] if not conditions or is_contradicted else [conditions]


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


def _weight(failed: Failed, evidence: Evidence, conditions: tuple[int, ...], missed: int) -> float:
    """Return the weight of an explanation that covers `missed` failures less than the one that covers most."""
    weight = SIZE_PRIOR[min(len(conditions), len(SIZE_PRIOR)) - 1] * OTHER_CAUSE ** min(missed, MOST_MISSED)
    for number in conditions:
        weight *= evidence.lexicon.weight(number)
    return weight * _blame_factor(failed, {evidence.lexicon.condition(number).parameter for number in conditions})


def _blame_factor(failed: Failed, names: set[str]) -> float:
    if not failed.blames:
        return 1.0
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
    return " ".join(str(evidence.lexicon.condition(number)) for number in conditions)
