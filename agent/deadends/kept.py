"""What was weighed of failures, kept for as long as nothing that passed since contradicts any of it.

Most trials of a long study pass where others passed before, or fail where that says nothing of other failures. Then the
conjunctions that may explain a failure are the same as before, and with the same failures to explain they weigh the
same. It is a cache and nothing else: without it the same is weighed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent.reasons import Reason

R = TypeVar("R")

MOST_FAILURES = 512
"""Failures of which something is kept, those asked about last: what is explained is not asked about again."""
MOST_ANSWERS = 16
"""Answers kept for each of them: a few for each lesson of one moment."""
MOST_STRIKES = 16
"""Sets of dead ends that strike anyway, and of values, of which something is kept."""
MOST_PASSES = 64
"""Passes that may come between two questions about a failure before it is weighed anew."""

Pass = frozenset[int]
"""The conditions that something satisfied which passed, as the lexicon numbers them."""


@dataclass(slots=True)
class Weighing:
    """What was weighed of one failure."""

    seen: int
    """Passes that bear on its reason and that it was weighed with."""
    standing: set[frozenset[int]] = field(default_factory=set)
    """The conjunctions that were looked at and that nothing contradicts."""
    _answers: dict[Hashable, Any] = field(default_factory=dict)

    def stand(self, conjunctions: Iterable[Iterable[int]]) -> None:
        """Note that these were looked at, and that nothing contradicts them."""
        self.standing.update(map(frozenset, conjunctions))

    def answer(self, question: Hashable, weigh: Callable[[], R]) -> R:
        """Return what was weighed for a question, or weigh it. Nobody may change it."""
        found: R = self._answers.pop(question) if question in self._answers else weigh()
        if len(self._answers) >= MOST_ANSWERS:  # those asked about longest ago go
            del self._answers[next(iter(self._answers))]
        self._answers[question] = found
        return found


class Kept:
    """The weighings of a study's failures, with the passes since."""

    def __init__(self) -> None:
        self._weighings: dict[tuple[Reason, int], Weighing] = {}
        self._latest: dict[Reason, list[Pass]] = {}
        self._number: dict[Reason, int] = {}
        self._tokens: dict[Hashable, int] = {}
        self._dead: dict[tuple[int, int], dict[tuple[frozenset[int], int], bool]] = {}

    def passed(self, reason: Reason, conditions: Pass) -> None:
        """Take in that something with these conditions may have come past where failures of a reason strike."""
        latest = self._latest.setdefault(reason, [])
        latest.append(conditions)
        del latest[:-MOST_PASSES]
        self._number[reason] = self._number.get(reason, 0) + 1

    def token(self, of: Hashable) -> int:
        """Return a number that stands for this: the same for equals."""
        return self._tokens.setdefault(of, len(self._tokens))

    def dead_beside(self, token: int, num_values: int) -> dict[tuple[frozenset[int], int], bool]:
        """Return what is known of conditions beside the strikes of a token, with so many values seen. Grows."""
        key = (token, num_values)
        if key not in self._dead and len(self._dead) >= MOST_STRIKES:
            del self._dead[next(iter(self._dead))]
        return self._dead.setdefault(key, {})

    def of(self, reason: Reason, index: int) -> Weighing:
        """Return what is known of a failure: nothing where something contradicts what was looked at."""
        key, number = (reason, index), self._number.get(reason, 0)
        found = self._weighings.pop(key, None)
        if found is None or not self._holds(found, reason, number):
            found = Weighing(number)
        found.seen = number
        self._weighings[key] = found
        if len(self._weighings) > MOST_FAILURES:
            del self._weighings[next(iter(self._weighings))]
        return found

    def contradicts(self, passed: Pass, reason: Reason, index: int) -> bool:
        """Return whether a pass contradicts what was looked at for a failure; True where that is forgotten."""
        found = self._weighings.get((reason, index))
        return found is None or any(each <= passed for each in found.standing)

    def _holds(self, weighing: Weighing, reason: Reason, number: int) -> bool:
        since = number - weighing.seen
        if since > MOST_PASSES:
            return False
        fresh = self._latest[reason][-since:] if since else []
        return not any(each <= conditions for conditions in fresh for each in weighing.standing)
