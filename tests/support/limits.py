"""Launches that show a limit of `graph`, and one failure at its edge."""

from __future__ import annotations

from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from runners import Rung
from search_spaces import Assignment
from tests.support.planted import Planted, small_space

SPACE = small_space()
PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
Row = tuple[Assignment, Rung, Outcome]


def failed(reason: Reason = Reason.ASSERTION, *blames: str) -> Outcome:
    """Return a failure with these blames."""
    failure = Planted((), reason).failure.model_copy(update={"blames": blames})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def row(outcome: Outcome, backend: str, draft: int, graph: int, expert: bool) -> Row:
    """Return a launch and its outcome."""
    return {"backend": backend, "draft": draft, "graph": graph, "expert": expert}, Rung.FULL, outcome


def at_most_two(outcome: Outcome = PASSED) -> list[Row]:
    """Return launches with small graphs."""
    return [
        row(outcome, backend, draft, graph, expert)
        for backend, draft, graph, expert in (
            ("a", 0, 0, False),
            ("b", 1, 1, True),
            ("c", 2, 2, False),
            ("d", 3, 2, True),
            ("a", 3, 1, True),
            ("c", 1, 2, True),
            ("b", 0, 2, False),
            ("d", 2, 1, False),
        )
    ]


def at_eight(outcome: Outcome) -> list[Row]:
    """Return launches with the largest graph: as many as it takes to believe that they fail."""
    return [
        row(outcome, backend, draft, 8, expert)
        for backend, draft, expert in (
            ("a", 1, False),
            ("b", 2, True),
            ("c", 3, False),
            ("d", 0, True),
            ("a", 2, True),
            ("d", 3, False),
            ("b", 0, False),
            ("c", 1, True),
        )
    ]


LONE = row(failed(), "c", 0, 4, True)
"""One failure at the edge."""
