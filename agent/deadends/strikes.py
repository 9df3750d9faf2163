"""Where a confirmed dead end strikes already, no trial can tell what else holds there.

If `expert_parallel` with `nccl_proto = auto` hangs, and with `p2p_disable` beside it something else fails first, then
"hangs, but only without `p2p_disable`" says the same about everything that may still be launched. Of two explanations
that differ only there, the shorter one stands for both.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.deadends.dead_end import DeadEnd
from agent.deadends.evidence import RUNG_ORDER, Evidence
from agent.deadends.implied import Weighed
from runners import Rung
from search_spaces import Comparison, Condition, Scalar


def folded(found: Sequence[Weighed], strikes: Sequence[DeadEnd], rung: Rung, evidence: Evidence) -> list[Weighed]:
    """Return the causes without those that a shorter one differs from only in what is dead at the rung, or never runs.

    Args:
        found: Possible causes of a failure.
        strikes: Confirmed dead ends.
        rung: Where it failed.
        evidence: What the study saw.
    """
    dead = [each for each in strikes if RUNG_ORDER[each.rung] <= RUNG_ORDER[rung]]
    weights = {frozenset(numbers): weight for weight, numbers, _ in found}
    for mine in sorted(weights, key=len, reverse=True):
        for number in sorted(mine):
            rest = mine - {number}
            if rest in weights and _is_dead_without(rest, number, dead, evidence):
                weights[rest] += weights.pop(mine)
                break
    kept = ((weights.get(frozenset(numbers)), numbers, support) for _, numbers, support in found)
    return [(weight, numbers, support) for weight, numbers, support in kept if weight is not None]


def _is_dead_without(rest: frozenset[int], number: int, dead: Sequence[DeadEnd], evidence: Evidence) -> bool:
    """Return whether everything with `rest` and without the condition lies in some dead end."""
    condition = evidence.lexicon.condition(number)
    name, domain = condition.parameter, evidence.space.parameters[condition.parameter].domain
    values = [each for each in domain if not condition.matches({name: each}) and not evidence.never_runs(name, each)]
    if not dead and values:
        return False
    others = [evidence.lexicon.condition(each) for each in rest]
    return all(any(_lies_in(each, name, value, others) for each in dead) for value in values)


def _lies_in(found: DeadEnd, name: str, value: Scalar, others: Sequence[Condition]) -> bool:
    point = {each.parameter: each for each in others}
    return not found.within and all(
        condition.matches({name: value})
        if condition.parameter == name
        else (mine := point.get(condition.parameter)) is not None and is_within(mine, condition)
        for condition in found.conditions
    )


def is_within(special: Condition, general: Condition) -> bool:
    """Return whether everything that satisfies `special`, a condition on the same parameter, satisfies `general`."""
    point = {general.parameter: special.value}
    if general.comparison is Comparison.EQUAL:
        return special.comparison is Comparison.EQUAL and general.matches(point)
    return special.comparison in (Comparison.EQUAL, general.comparison) and general.matches(point)
