"""Which of several conjunctions say more than others."""

from __future__ import annotations

from collections.abc import Sequence

from agent.deadends.dead_end import DeadEnd
from agent.deadends.evidence import Failed
from agent.deadends.lexicon import Lexicon
from agent.deadends.strikes import is_within
from search_spaces import Conjunction

Found = tuple[tuple[int, ...], int]
"""Conditions as the lexicon numbers them, and the bits of the failures that they explain."""


def most_general(found: Sequence[Found], lexicon: Lexicon) -> list[Found]:
    """Leave out what a more general conjunction says already."""
    kept: list[Conjunction] = [tuple(map(lexicon.condition, numbers)) for numbers, _ in found]
    return [
        each
        for each, special in zip(found, kept, strict=True)
        if not any(special != general and _implies(special, general) for general in kept)
    ]


def _implies(special: Conjunction, general: Conjunction) -> bool:
    """Return whether everything that satisfies `special` satisfies `general`."""
    point = {condition.parameter: condition for condition in special}
    return all(
        (mine := point.get(condition.parameter)) is not None and is_within(mine, condition) for condition in general
    )


def explained_by(known: Sequence[DeadEnd], failures: Sequence[Failed]) -> int:
    """Return the bits of the failures of a reason that a known dead end explains."""
    mine = [found for found in known if failures and found.reason is failures[0].failure.reason]
    explained = (
        each for each in failures if any(found.covers(each.seen.assignment, each.seen.visible) for found in mine)
    )
    return sum(1 << each.index for each in explained) if mine else 0
