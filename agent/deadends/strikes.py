"""Where a confirmed dead end strikes already, no trial can tell what else holds there.

If `expert_parallel` with `nccl_proto = auto` hangs, and with `p2p_disable` beside it something else fails first, then
"hangs, but only without `p2p_disable`" says the same about everything that may still be launched. Of two explanations
that differ only there, the shorter one stands for both, or the longer one where it is likelier: where the message names
what only this one has. Several dead ends may do this together: one with `allreduce = custom`, another with every other
value of it.

What fails there in the very phase of the cause speaks against the shorter one, which might as well have come first.
Where that makes the longer one likely, nobody can tell, and both stay possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from agent.deadends.dead_end import DeadEnd
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.implied import Weighed
from runners import Rung
from search_spaces import Comparison, Condition, Conjunction, Scalar

Strikes = tuple[tuple[Rung, Conjunction, bool], ...]
"""Rung, conditions and whether it is bounded by `within`, of dead ends that strike anyway."""
Known = dict[tuple[frozenset[int], int], bool]
"""Conditions, and a further one → whether everything with those and without that one is dead."""

COMES_FIRST = 0.5
"""How likely a cause comes after another one that strikes in the same phase, wherever both hold."""
MOST_HIDDEN = 0.2
"""How likely all the longer causes together are that nothing tells from a cause, up to which it stands for them."""
MOST_DOUBT = 0.3
"""How likely the longer of two causes is, compared with the shorter one, up to which this one stands for both."""


def forbidden_by(strikes: Sequence[DeadEnd]) -> Strikes:
    """Return what of these dead ends counts for `folded`: what they forbid."""
    return tuple((found.rung, found.conditions, bool(found.within)) for found in strikes)


def folded(
    found: Sequence[Weighed],
    strikes: Sequence[DeadEnd],
    evidence: Evidence,
    failed: Failed | None = None,
    known: Known | None = None,
) -> list[Weighed]:
    """Return the causes without those that a likelier one differs from only in what is dead, or never runs.

    Args:
        found: Possible causes of a failure.
        strikes: Confirmed dead ends, of any rung: what would die as a launch is not probed either.
        evidence: What the study saw.
        failed: The failure; None: whatever its phase is.
        known: What was found before beside the same strikes and values: grows.
    """
    known = {} if known is None else known
    weights = {frozenset(numbers): weight for weight, numbers, _ in found}
    for size in sorted(set(map(len, weights)), reverse=True):
        hidden: dict[frozenset[int], list[frozenset[int]]] = defaultdict(list)
        for mine in [each for each in weights if len(each) == size]:
            for number in sorted(mine):
                rest = mine - {number}
                if rest not in weights:
                    continue
                if (rest, number) not in known:
                    known[rest, number] = is_dead_without(rest, number, strikes, evidence)
                if known[rest, number] and weights[mine] > weights[rest]:  # the message names what only the longer has
                    weights[mine] += weights.pop(rest)
                elif known[rest, number] and not (failed and _is_doubtful(mine, number, weights, failed, evidence)):
                    if _ever_differs(number, evidence):
                        hidden[rest].append(mine)
                    else:
                        weights[rest] += weights.pop(mine)
                    break
        for rest, longer in hidden.items():
            if rest in weights and sum(map(weights.__getitem__, longer)) <= MOST_HIDDEN * weights[rest]:
                weights[rest] += sum(map(weights.pop, longer))
    kept = ((weights.get(frozenset(numbers)), numbers, support) for _, numbers, support in found)
    return [(weight, numbers, support) for weight, numbers, support in kept if weight is not None]


def _ever_differs(number: int, evidence: Evidence) -> bool:
    """Return whether the engine runs any value that does not satisfy a condition."""
    return bool(_running_without(evidence.lexicon.condition(number), evidence))


def _running_without(condition: Condition, evidence: Evidence) -> list[Scalar]:
    name = condition.parameter
    return [each for each in _running(name, evidence) if not condition.matches({name: each})]


def is_dead_without(rest: frozenset[int], number: int, dead: Sequence[DeadEnd], evidence: Evidence) -> bool:
    """Return whether everything with the conditions `rest` and without a further one lies in some dead end.

    Args:
        rest: Conditions, as the lexicon numbers them.
        number: The further one, likewise.
        dead: Confirmed dead ends.
        evidence: What the study saw, with the values that never run.
    """
    condition = evidence.lexicon.condition(number)
    values = _running_without(condition, evidence)
    if not dead and values:
        return False
    others = {each.parameter: each for each in map(evidence.lexicon.condition, rest)}
    points = ({**others, condition.parameter: Condition(parameter=condition.parameter, value=each)} for each in values)
    return all(_is_dead(point, dead, evidence) for point in points)


def _is_doubtful(
    mine: frozenset[int], number: int, weights: Mapping[frozenset[int], float], failed: Failed, evidence: Evidence
) -> bool:
    """Return whether what struck without the condition, in the phase of a failure, makes the longer cause likely."""
    condition, lexicon, rest = evidence.lexicon.condition(number), evidence.lexicon, mine - {number}
    name, domain = condition.parameter, evidence.space.parameters[condition.parameter].domain
    outside = (lexicon.satisfied(name, value) for value in domain if not condition.matches({name: value}))
    others = {reason for value in outside for reason in evidence.struck_otherwise((*rest, *value), failed)}
    return bool(others) and weights[mine] > MOST_DOUBT * weights[rest] * COMES_FIRST ** len(others)


def _running(name: str, evidence: Evidence) -> list[Scalar]:
    return [each for each in evidence.space.parameters[name].domain if not evidence.never_runs(name, each)]


def _is_dead(point: Mapping[str, Condition], dead: Sequence[DeadEnd], evidence: Evidence) -> bool:
    """Return whether one dead end takes in all of these, or several do whatever one further parameter is."""
    further: dict[str, list[Condition]] = defaultdict(list)
    for found in dead:
        missing = None if found.within else _missing(point, found)
        if missing == []:
            return True
        if missing is not None and len(missing) == 1:
            further[missing[0].parameter].append(missing[0])
    return any(
        all(any(each.matches({name: value}) for each in conditions) for value in _running(name, evidence))
        for name, conditions in further.items()
    )


def _missing(point: Mapping[str, Condition], found: DeadEnd) -> list[Condition] | None:
    """Return the conditions of a dead end on other parameters; None where it asks for other values of these."""
    known = [each for each in found.conditions if each.parameter in point]
    if not all(is_within(point[each.parameter], each) for each in known):
        return None
    return [each for each in found.conditions if each.parameter not in point]


def is_within(special: Condition, general: Condition) -> bool:
    """Return whether everything that satisfies `special`, a condition on the same parameter, satisfies `general`."""
    point = {general.parameter: special.value}
    if general.comparison is Comparison.EQUAL:
        return special.comparison is Comparison.EQUAL and general.matches(point)
    return special.comparison in (Comparison.EQUAL, general.comparison) and general.matches(point)
