"""All rules in one table. A new rule is a row in one of the modules of `rules`; nothing else changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from agent.classify.rule import Rule
from agent.classify.rules import FAMILIES


def collect(families: Iterable[tuple[Rule, ...]]) -> tuple[Rule, ...]:
    """Return the rules of all families sorted by code.

    Raises:
        ValueError: Two rules share a code or a name.
    """
    rules = sorted((rule for family in families for rule in family), key=lambda rule: rule.code)
    uses = Counter(rule.code for rule in rules) + Counter(rule.name for rule in rules)
    twice = sorted(label for label, count in uses.items() if count > 1)
    if twice:
        raise ValueError(f"rule codes and names must be unique, these are used twice: {', '.join(twice)}")
    return tuple(rules)


_NAMED_GROUP = re.compile(r"\(\?P<\w+>")

RULES: tuple[Rule, ...] = collect(FAMILIES)


def decisive_patterns() -> tuple[str, ...]:
    """Return the patterns whose lines may end a wait at once, for runners, which know no rules of their own.

    Without named groups, so that a runner may join them into one expression.
    """
    patterns = (pattern for rule in RULES if rule.is_decisive for pattern in rule.any_of)
    return tuple(_NAMED_GROUP.sub("(?:", pattern) for pattern in patterns)
