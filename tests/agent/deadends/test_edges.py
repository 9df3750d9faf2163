"""A limit is believed as far as failures enough reach: a single one at its edge may be chance."""

from __future__ import annotations

import pytest

from agent.deadends.atlas import Atlas
from agent.deadends.charter import chart
from agent.deadends.dead_end import DeadEndState
from agent.reasons import Reason
from tests.support.limits import LONE, PASSED, SPACE, Row, at_eight, at_most_two, failed, row
from tests.support.planted import FACTS
from tests.support.strategies import numbered


def charted(rows: list[Row]) -> Atlas:
    """Return the map of launches."""
    return chart(numbered(rows), [], SPACE, FACTS)


def states(atlas: Atlas) -> dict[str, DeadEndState]:
    """Return what the map says, in words, with how sure it is."""
    return {str(found): found.state for found in atlas.dead_ends}


def test_one_failure_at_the_edge_moves_no_limit() -> None:
    """The largest graph is dead; that the next one is, too, is suspected, and blocks only that launch."""
    atlas = charted([*at_most_two(), *at_eight(failed()), LONE])
    assert states(atlas) == {"graph ≥ 8": DeadEndState.CONFIRMED, "graph ≥ 4": DeadEndState.SUSPECTED}
    edge = next(found for found in atlas.dead_ends if found.state is DeadEndState.SUSPECTED)
    assert edge.support == ("#16",)
    assert atlas.match(LONE[0]) == edge
    assert atlas.match({**LONE[0], "draft": 1}) is None
    assert atlas.edges_of(atlas.confirmed[0]) == (edge,)
    assert atlas.suspicions == ()


def test_a_second_failure_at_the_edge_moves_it() -> None:
    """In another launch, so that nothing but the limit is common to both."""
    atlas = charted([*at_most_two(), *at_eight(failed()), LONE, row(failed(), "a", 3, 4, False)])
    assert states(atlas) == {"graph ≥ 4": DeadEndState.CONFIRMED}


def test_a_pass_at_the_edge_leaves_the_limit_where_it_was() -> None:
    """Then the failure there had another cause, or none."""
    atlas = charted([*at_most_two(), *at_eight(failed()), LONE, row(PASSED, "a", 3, 4, False)])
    assert [str(found) for found in atlas.confirmed] == ["graph ≥ 8"]
    assert atlas.edges_of(atlas.confirmed[0]) == ()


def test_failures_further_out_speak_for_all_values_before_them() -> None:
    """One at 4 and one at 2: at least one of them is hardly chance, so that the limit begins at 4 or earlier."""
    rows = [each for each in at_most_two() if each[0]["graph"] != 2]
    atlas = charted([*rows, *at_eight(failed()), LONE, row(failed(), "a", 3, 2, False)])
    assert states(atlas) == {"graph ≥ 4": DeadEndState.CONFIRMED, "graph ≥ 2": DeadEndState.SUSPECTED}


def test_a_failure_that_names_the_parameter_moves_its_limit() -> None:
    """Chance names nothing."""
    rows = [*at_most_two(), *at_eight(failed(Reason.ASSERTION, "graph"))]
    atlas = charted([*rows, row(failed(Reason.ASSERTION, "graph"), "c", 0, 4, True)])
    assert states(atlas) == {"graph ≥ 4": DeadEndState.CONFIRMED}


def test_a_reason_that_is_dead_at_once_knows_no_chance() -> None:
    """What does not compile once never does."""
    reason = Reason.JIT_COMPILE_ERROR
    atlas = charted([*at_most_two(), *at_eight(failed(reason)), row(failed(reason), "c", 0, 4, True)])
    assert states(atlas) == {"graph ≥ 4": DeadEndState.CONFIRMED}


def test_the_limit_of_a_pair_moves_as_little() -> None:
    """Beside another condition, one failure at the edge is as little as alone."""
    fails = [
        row(failed(), "b", draft, 8, expert)
        for draft, expert in ((0, False), (1, True), (2, False), (3, True), (1, False), (2, True))
    ]
    passes = [
        row(PASSED, backend, draft, graph, expert)
        for backend, draft, graph, expert in (
            ("a", 0, 8, False),
            ("a", 1, 4, True),
            ("a", 2, 8, True),
            ("c", 3, 8, False),
            ("d", 1, 8, True),
            ("d", 0, 8, False),
            ("b", 0, 1, False),
            ("b", 2, 0, True),
            ("b", 3, 2, False),
        )
    ]
    atlas = charted([*at_most_two(), *passes, *fails, row(failed(), "b", 3, 4, False)])
    assert [str(found) for found in atlas.confirmed] == ["backend = b ∧ graph ≥ 8"]


def test_failures_that_share_a_place_where_such_failures_come_and_go_move_no_limit() -> None:
    """Where `expert` is on, what looks the same struck elsewhere too, and passed again: it is no limit that strikes."""
    source = [
        row(outcome, backend, draft, graph, True)
        for backend, draft, graph, outcome in (
            ("a", 0, 1, failed()),
            ("b", 2, 0, failed()),
            ("d", 1, 2, failed()),
            ("c", 3, 0, failed()),
            ("a", 2, 0, PASSED),
            ("d", 0, 1, PASSED),
        )
    ]
    rows = [*at_most_two(), *source, *at_eight(failed()), LONE, row(failed(), "a", 3, 4, True)]
    assert "graph ≥ 8" in {str(found) for found in charted(rows).confirmed}
    elsewhere = charted([*rows, row(failed(), "d", 1, 4, False), row(failed(), "b", 2, 4, False)])
    assert "graph ≥ 4" in {str(found) for found in elsewhere.confirmed}


@pytest.mark.parametrize("reason", [Reason.ASSERTION, Reason.SERVER_HANG])
def test_the_order_of_the_failures_does_not_change_where_a_limit_begins(reason: Reason) -> None:
    """The failure at the edge is no other one for being the first or the last."""
    rows = [
        *at_most_two(),
        *at_eight(failed(reason)),
        row(failed(reason), "d", 2, 8, False),
        row(failed(reason), "c", 0, 4, True),
    ]
    forward, backward = states(charted(rows)), states(charted(rows[::-1]))
    assert forward == backward == {"graph ≥ 8": DeadEndState.CONFIRMED, "graph ≥ 4": DeadEndState.SUSPECTED}
