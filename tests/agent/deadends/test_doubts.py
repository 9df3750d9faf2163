"""A failure that has another explanation anyway does not make a shorter cause likely."""

from __future__ import annotations

from agent.deadends.charter import chart
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from tests.support.limits import PASSED, SPACE, Row, failed, row
from tests.support.planted import FACTS, Planted
from tests.support.strategies import numbered

ELSEWHERE = [
    row(PASSED, backend, draft, graph, expert)
    for backend, draft, graph, expert in (
        ("b", 0, 0, False),
        ("c", 1, 8, False),
        ("d", 2, 1, True),
        ("b", 3, 4, True),
        ("c", 2, 2, True),
        ("d", 1, 0, False),
        ("b", 1, 1, True),
        ("d", 0, 4, False),
        ("c", 3, 0, False),
        ("d", 3, 8, True),
    )
]


def confirmed(rows: list[Row]) -> list[str]:
    """Return what is confirmed after these launches."""
    return [str(found) for found in chart(numbered(rows), [], SPACE, FACTS).confirmed]


def named(reason: Reason, *blames: str) -> Outcome:
    """Return a failure whose message names these parameters, or none."""
    failure = Planted((), reason).failure.model_copy(update={"blames": blames})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


WITHOUT_EXPERT = [
    row(failed(), "a", draft, graph, False) for draft, graph in ((0, 0), (1, 1), (2, 2), (3, 4), (1, 8), (2, 0), (3, 2))
]
"""`backend = a` fails where `expert` is off."""
DRAFT_0_WITH_EXPERT = [row(failed(), backend, 0, graph, True) for backend, graph in (("b", 8), ("c", 1), ("d", 0))]
"""And something else fails whatever the backend is."""


def test_what_another_suspected_cause_explains_says_nothing_for_a_shorter_one() -> None:
    """The only failure of `backend = a` with `expert` has `draft = 0`, which fails with `expert` elsewhere, too."""
    rows = [*ELSEWHERE, *WITHOUT_EXPERT, *DRAFT_0_WITH_EXPERT, row(failed(), "a", 0, 4, True)]
    assert "backend = a" not in confirmed(rows)


def test_what_no_other_cause_explains_does() -> None:
    """With `draft = 1` it is `backend = a` that fails, whatever `expert` is."""
    rows = [*ELSEWHERE, *WITHOUT_EXPERT, *DRAFT_0_WITH_EXPERT]
    rows += [row(failed(), "a", draft, graph, True) for draft, graph in ((0, 4), (1, 2), (2, 4))]
    assert "backend = a" in confirmed(rows)


NAMING_EXPERT = [
    row(named(Reason.PROCESS_KILLED, "expert"), "a", draft, graph, True)
    for draft, graph in ((0, 0), (1, 1), (2, 2), (3, 4), (1, 8), (2, 0), (3, 2), (0, 8))
]
"""`backend = a` is killed with `expert`, and the message says that it is about `expert`."""
COMES_AND_GOES = [
    row(named(Reason.PROCESS_KILLED), "b", 2, 8, False),
    row(named(Reason.PROCESS_KILLED), "c", 3, 2, False),
    row(PASSED, "b", 2, 8, False),
]
"""What names nothing comes and goes."""


def test_a_failure_that_names_nothing_does_not_widen_a_cause_that_the_others_name() -> None:
    """The one of `backend = a` without `expert` may be one of those that come and go."""
    rows = [*ELSEWHERE, *NAMING_EXPERT, *COMES_AND_GOES, row(named(Reason.PROCESS_KILLED), "a", 1, 4, False)]
    assert "backend = a" not in confirmed(rows)
    passed = [row(PASSED, "a", draft, graph, False) for draft, graph in ((2, 1), (0, 2), (3, 8), (1, 0), (2, 4))]
    assert "backend = a ∧ expert = true" in confirmed([*rows, *passed])
