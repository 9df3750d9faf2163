"""Closed trials → the map of dead ends. A pure function: replaying any prefix of the trials gives the same map.

For each failure, the smallest conjunction of what its evidence accuses that no passing trial satisfies; singles before
pairs. A reason whose message leaves no doubt ("built without NCCL") is believed at once; any other needs a second
failure of its own. One passing trial inside a dead end makes it grow by a condition, or retires it.

A failure whose message names no parameter accuses the single change that was made to a working base, together with
whatever of that base never differed among such failures. Where more than one thing was changed, it accuses nothing.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.deadends.condition import Comparison, Condition, Conjunction, is_number, matches_all
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.observation import Observation
from agent.outcome import Failure
from agent.reasons import REASONS, Policy
from runners import Rung
from search_spaces import Facts, SearchSpace

RUNG_ORDER = {rung: index for index, rung in enumerate(Rung)}
LARGEST_CONJUNCTION = 3


@dataclass(frozen=True, slots=True)
class _Failed:
    """An observation together with its failure, so that neither is optional."""

    seen: Observation
    failure: Failure


def learn(seen: Sequence[Observation], space: SearchSpace, facts: Facts) -> tuple[DeadEnd, ...]:
    """Return the dead ends that the observations support, confirmed ones first, in order of first sight."""
    passes = [observation for observation in seen if observation.passed]
    failures = [_Failed(observation, observation.failure) for observation in seen if observation.failure]
    groups: dict[tuple[str, Conjunction], list[_Failed]] = defaultdict(list)
    position = {name: index for index, name in enumerate(space.parameters)}
    for failed in failures:
        found = _explanation(failed, failures, passes, space)
        conditions = tuple(sorted(found, key=lambda condition: position[condition.parameter]))
        groups[failed.failure.reason.value, conditions].append(failed)
    dead_ends = [_dead_end(conditions, group, passes, space, facts) for (_, conditions), group in groups.items()]
    return tuple(sorted(_without_implied(dead_ends), key=lambda found: found.state is not DeadEndState.CONFIRMED))


def _explanation(
    failed: _Failed, failures: Sequence[_Failed], passes: Sequence[Observation], space: SearchSpace
) -> Conjunction:
    """Return the smallest conjunction that the failure satisfies and no comparable pass does."""
    relevant = [seen for seen in passes if RUNG_ORDER[seen.rung] >= RUNG_ORDER[failed.seen.rung]]
    # With other blames it is another cause: its value says nothing about where this one begins.
    alike = [
        other
        for other in failures
        if other.failure.reason is failed.failure.reason and set(other.failure.blames) == set(failed.failure.blames)
    ]
    for conditions in _candidates(failed, alike, space):
        if not any(matches_all(conditions, seen.assignment) for seen in relevant):
            return conditions
    return _exactly(failed, failed.seen.visible)


def _candidates(failed: _Failed, alike: Sequence[_Failed], space: SearchSpace) -> Iterator[Conjunction]:
    """Yield conjunctions in the order in which they are believed: the accused together, fewer, then with company."""
    accused = _accused(failed)
    others = tuple(name for name in failed.seen.visible if name not in accused)
    if not accused:
        return
    yield from _spellings(failed, accused, alike, space)
    for size in range(1, LARGEST_CONJUNCTION + 1 - len(accused)):
        for company in itertools.combinations(others, size):
            yield from _spellings(failed, (*accused, *company), alike, space)


def _accused(failed: _Failed) -> tuple[str, ...]:
    """What the message names; else the one change that was made to a working base; else nothing in particular."""
    blamed = tuple(name for name in failed.failure.blames if name in failed.seen.visible)
    return blamed or (failed.seen.changed if len(failed.seen.changed) == 1 else ())


def _spellings(
    failed: _Failed, names: Sequence[str], alike: Sequence[_Failed], space: SearchSpace
) -> Iterator[Conjunction]:
    """Yield the conjunction over `names`, thresholds first: what asks too much also fails where more is asked."""
    here = failed.seen.assignment
    monotone = [name for name in names if space.parameters[name].monotone and is_number(here[name])]
    per_name = [
        _thresholds(name, failed, names, alike) if name in monotone else [_equal(failed, name)] for name in names
    ]
    if monotone:
        yield from itertools.product(*per_name)
    yield _exactly(failed, names)


def _thresholds(name: str, failed: _Failed, names: Sequence[str], alike: Sequence[_Failed]) -> list[Condition]:
    """Thresholds at which a failure alike was seen, up to this one's own value, lowest first."""
    here = failed.seen.assignment
    rest = [other for other in names if other != name]
    values = {
        float(other.seen.assignment[name]): other.seen.assignment[name]
        for other in alike
        if all(other.seen.assignment[key] == here[key] for key in rest)
        and name in other.seen.visible
        and is_number(other.seen.assignment[name])
    }
    reached = [values[number] for number in sorted(values) if number <= float(here[name])]
    return [Condition(parameter=name, comparison=Comparison.AT_LEAST, value=value) for value in reached]


def _equal(failed: _Failed, name: str) -> Condition:
    return Condition(parameter=name, value=failed.seen.assignment[name])


def _exactly(failed: _Failed, names: Sequence[str]) -> Conjunction:
    return tuple(_equal(failed, name) for name in names)


def _dead_end(
    conditions: Conjunction,
    group: Sequence[_Failed],
    passes: Sequence[Observation],
    space: SearchSpace,
    facts: Facts,
) -> DeadEnd:
    first = group[0]
    row = REASONS[first.failure.reason]
    rung = min((failed.seen.rung for failed in group), key=RUNG_ORDER.__getitem__)
    contradicting = tuple(
        seen.label
        for seen in passes
        if matches_all(conditions, seen.assignment) and RUNG_ORDER[seen.rung] >= RUNG_ORDER[rung]
    )
    return DeadEnd(
        id=_identify(conditions, first.failure.reason.value),
        conditions=conditions,
        reason=first.failure.reason,
        policy=row.policy,
        state=_state(conditions, group, contradicting),
        rung=rung,
        suspects=_accused(first) or first.seen.visible,
        held=_held(conditions, group),
        observed=first.seen.assignment,
        scope={name: facts.get(name) for name in row.facts if facts.get(name) is not None},
        support=tuple(failed.seen.label for failed in group),
        contradicting=contradicting,
        does_not_matter=_varied(conditions, group),
        decisive=first.failure.decisive.text if first.failure.decisive else "",
        cure=first.failure.cure,
        seconds=sum(failed.seen.seconds for failed in group),
    )


def _state(conditions: Conjunction, group: Sequence[_Failed], contradicting: Sequence[str]) -> DeadEndState:
    failed_twice = len({failed.seen.label for failed in group}) >= 2
    if contradicting:  # only ever the very same launch: anything less would have made the conjunction grow
        return DeadEndState.FLAKY
    named = {condition.parameter for condition in conditions}  # with company that no message named, it is a guess
    believed = any(
        failed.failure.policy is Policy.DEAD_AT_ONCE and named.issubset(failed.failure.blames) for failed in group
    )
    return DeadEndState.CONFIRMED if believed or failed_twice else DeadEndState.SUSPECTED


def _held(conditions: Conjunction, group: Sequence[_Failed]) -> tuple[str, ...]:
    """Return what else was the same in all failures, where no message says that it does not matter."""
    if all(failed.failure.blames for failed in group):
        return ()
    named = {condition.parameter for condition in conditions} | set(_varied(conditions, group))
    return tuple(name for name in group[0].seen.visible if name not in named)


def _varied(conditions: Conjunction, group: Sequence[_Failed]) -> tuple[str, ...]:
    """Return the parameters that differed among the failures: shown not to matter."""
    named = {condition.parameter for condition in conditions}
    visible = [name for name in group[0].seen.visible if name not in named]
    return tuple(name for name in visible if len({repr(failed.seen.assignment[name]) for failed in group}) > 1)


def _without_implied(dead_ends: Sequence[DeadEnd]) -> Iterator[DeadEnd]:
    """Leave out what a more general confirmed dead end of the same reason already says."""
    for found in dead_ends:
        general = (
            other
            for other in dead_ends
            if other is not found and other.state is DeadEndState.CONFIRMED and other.reason is found.reason
        )
        if not any(_implies(found.conditions, other.conditions) for other in general):
            yield found


def _implies(special: Conjunction, general: Conjunction) -> bool:
    """Return whether everything that satisfies `special` satisfies `general`, and not the other way round."""
    point: Mapping[str, Condition] = {condition.parameter: condition for condition in special}
    covered = all(
        (mine := point.get(condition.parameter)) is not None and condition.matches({condition.parameter: mine.value})
        for condition in general
    )
    return covered and special != general


def _identify(conditions: Conjunction, reason: str) -> str:
    """Return an id that stays the same while a threshold is still moving."""
    parts = [
        f"{condition.parameter}{condition.comparison}"
        + ("" if condition.comparison is Comparison.AT_LEAST else str(condition.value))
        for condition in conditions
    ]
    digest = hashlib.sha256("|".join([reason, *sorted(parts)]).encode()).hexdigest()
    return f"D{digest[:6]}"
