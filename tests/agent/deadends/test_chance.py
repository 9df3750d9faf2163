"""Chance against causes: what comes and goes must not look like a dead end."""

from __future__ import annotations

from unittest import mock

import pytest

from agent.deadends import chance
from agent.deadends.atlas import Atlas
from agent.deadends.chance import parts_of
from agent.deadends.charter import Charter, chart
from agent.deadends.dead_end import DeadEndState
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from runners import Phase, Rung
from search_spaces import Assignment
from tests.support.planted import FACTS, Planted, small_space
from tests.support.strategies import numbered

SPACE = small_space()
PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
Row = tuple[Assignment, Rung, Outcome]


def failed(reason: Reason = Reason.COLLECTIVE_TIMEOUT, phase: Phase = Phase.WARMUP) -> Outcome:
    """Return a failure that blames nothing."""
    failure = Planted((), reason).failure.model_copy(update={"phase": phase})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def row(outcome: Outcome, backend: str, draft: int, graph: int, expert: bool) -> Row:
    """Return a launch and its outcome."""
    return {"backend": backend, "draft": draft, "graph": graph, "expert": expert}, Rung.FULL, outcome


def charted(rows: list[Row]) -> Atlas:
    """Return the map of launches."""
    return chart(numbered(rows), [], SPACE, FACTS)


EIGHT_OF_EIGHT = [
    row(failed(), "b", draft, graph, False)
    for draft, graph in ((0, 0), (1, 1), (2, 2), (3, 4), (0, 8), (1, 4), (2, 0), (3, 2))
]
ELSEWHERE = [
    row(PASSED, backend, draft, graph, expert)
    for backend in ("a", "c")
    for draft, graph, expert in ((0, 8, False), (1, 0, True), (2, 1, False), (3, 2, True), (2, 4, False))
]


def test_what_one_pass_left_of_a_place_that_nearly_always_fails_is_not_believed() -> None:
    """`backend = b` may come and go, and have passed but once, just where `expert` was on."""
    atlas = charted([*ELSEWHERE, *EIGHT_OF_EIGHT, row(PASSED, "b", 2, 2, True)])
    assert atlas.confirmed == ()
    assert [str(found) for found in atlas.dead_ends] == ["backend = b ∧ expert = false"]


BESIDE = [
    *(row(PASSED, "b", draft, graph, True) for draft, graph in ((2, 2), (0, 0), (1, 8), (3, 1), (0, 4), (1, 2))),
    *(row(PASSED, backend, draft, graph, False) for backend, draft, graph in (("a", 0, 1), ("c", 3, 8), ("d", 1, 0))),
    row(PASSED, "b", 2, 0, True),
]
"""With one of the two conditions each."""


@pytest.mark.parametrize(("passes", "state"), [(3, DeadEndState.SUSPECTED), (10, DeadEndState.CONFIRMED)])
def test_passes_beside_it_make_the_same_believed_once_they_are_enough(passes: int, state: DeadEndState) -> None:
    """A source that comes and goes with `backend = b` would have struck there as well, one without `expert`, too."""
    (found,) = charted([*ELSEWHERE, *EIGHT_OF_EIGHT, *BESIDE[:passes]]).dead_ends
    assert (str(found), found.state) == ("backend = b ∧ expert = false", state)


def test_what_is_not_believed_yet_is_not_launched_either() -> None:
    """Only the very values of the cause count: whatever else differs, the launch would most likely fail."""
    atlas = charted([*ELSEWHERE, *EIGHT_OF_EIGHT, *BESIDE[:3]])
    new, _, _ = row(PASSED, "b", 3, 1, False)
    assert atlas.confirmed == ()
    assert atlas.match(new) is not None
    assert atlas.match({**new, "backend": "a"}) is None


def test_the_parts_of_a_place_that_comes_and_goes_are_no_dead_ends() -> None:
    """What failed twice here and twice there, beside as many passes, is one source and not several causes."""
    rows = [
        row(failed() if (draft + graph + expert) % 2 else PASSED, "b", draft, graph, expert)
        for draft in (0, 1, 2, 3)
        for graph in (0, 1, 2, 4)
        for expert in (False, True)
    ]
    assert charted([*ELSEWHERE, *rows]).confirmed == ()


NEVER_PASSED = [
    ("d", draft, graph, expert)
    for draft, graph, expert in (
        (0, 0, False),
        (1, 1, True),
        (2, 2, False),
        (3, 4, True),
        (0, 8, True),
        (1, 4, False),
        (2, 8, False),
        (3, 2, True),
        (3, 0, True),
        (1, 0, True),
        (2, 0, False),
    )
]


def test_a_single_value_that_never_passed_is_believed_although_such_failures_come_and_go_elsewhere() -> None:
    """Chance at its rate would not have hit every launch of it, nor all of those where it was seen (`graph = 0`)."""
    again = [row(outcome, "a", 3, 0, True) for outcome in (failed(), PASSED)]
    never = [row(failed(), *point) for point in NEVER_PASSED]
    assert [str(found) for found in charted([*ELSEWHERE, *again, *never]).confirmed] == ["backend = d"]


@pytest.mark.parametrize(
    ("reason", "launches", "state"),
    [
        (Reason.ASSERTION, 6, DeadEndState.CONFIRMED),
        (Reason.KERNEL_ERROR, 9, DeadEndState.SUSPECTED),
        (Reason.KERNEL_ERROR, 10, DeadEndState.CONFIRMED),
        (Reason.SERVER_HANG, 9, DeadEndState.SUSPECTED),
        (Reason.SERVER_HANG, 10, DeadEndState.CONFIRMED),
    ],
)
def test_kernel_errors_are_believed_after_as_many_failures_as_hangs(
    reason: Reason, launches: int, state: DeadEndState
) -> None:
    """A race in a kernel comes and goes, an assertion hardly does."""
    rows = [row(failed(reason), *point) for point in NEVER_PASSED[:launches]]
    (found,) = charted([*ELSEWHERE, *rows]).dead_ends
    assert (str(found), found.state) == ("backend = d", state)


def test_what_struck_in_an_earlier_phase_has_a_cause_of_its_own() -> None:
    """`backend = b` dies late; that it also dies early where `expert` is on takes nothing from that cause."""
    late = [
        row(failed(Reason.ASSERTION), "b", draft, graph, False)
        for draft, graph in ((0, 0), (1, 8), (2, 2), (3, 1), (0, 4), (1, 2))
    ]
    early = [
        row(failed(Reason.ASSERTION, Phase.ALLOC_KV), backend, draft, graph, True)
        for backend, draft, graph in (("b", 0, 8), ("b", 3, 0), ("a", 2, 4), ("c", 1, 1), ("d", 2, 0), ("c", 3, 2))
    ]
    others = [each for each in ELSEWHERE if not each[0]["expert"]]
    found = {str(each): each.support for each in charted([*others, *late, *early]).confirmed}
    assert set(found) == {"backend = b", "expert = true"}
    assert set(found["expert = true"]) == {f"#{len(others) + len(late) + index}" for index in range(len(early))}


def test_a_whole_assignment_has_few_places_where_chance_may_strike() -> None:
    """All parts of it would be two to the number of its parameters."""
    assert parts_of((1, 2)) == [(), (1,), (2,), (1, 2)]
    many = tuple(range(40))
    assert [len(part) for part in parts_of(many)] == [0] + 40 * [1] + 780 * [2] + [40]


def test_what_is_certainly_chance_is_not_weighed_again_for_each_launch_that_passes() -> None:
    """Passes elsewhere make it a little less certain, and a look at one place says that it still is."""
    charter = Charter(SPACE, FACTS)
    passed = [
        row(PASSED, backend, draft, 0, expert) for backend in "acd" for draft in range(4) for expert in (False, True)
    ]
    trials = numbered([row(failed(), "b", 0, 8, False), row(failed(), "c", 3, 4, True), *passed, *passed])
    with mock.patch.multiple(chance, MANY=0, MOST_ODDS=0.01):
        before = charter.chart(trials[: 2 + len(passed)], [])
        assert before.suspicions
        with mock.patch.object(chance.Chance, "_odds_at", side_effect=AssertionError("weighed again")):
            after = charter.chart(trials, [])
        assert after == chart(trials, [], SPACE, FACTS)
    assert all(each is other for each, other in zip(before.suspicions, after.suspicions, strict=True))
