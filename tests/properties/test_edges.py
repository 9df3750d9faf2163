"""No limit rests on a single failure that may have been chance, whatever was seen."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.deadends.charter import Charter, chart
from agent.deadends.dead_end import DeadEnd
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Policy, Reason
from agent.store.trial import Trial
from runners import Rung
from search_spaces import Assignment, Comparison, Condition, Scalar, matches_all
from tests.support.planted import FACTS, Planted, small_space
from tests.support.strategies import numbered

SPACE = small_space()
PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
POINTS: list[Assignment] = [
    dict(zip(SPACE.parameters, values, strict=True))
    for values in itertools.product(*(each.domain for each in SPACE.parameters.values()))
]
GRAPHS = SPACE.parameters["graph"].domain
Row = tuple[Assignment, Rung, Outcome]


def failed(reason: Reason) -> Outcome:
    """Return a failure that names nothing."""
    return Outcome(kind=OutcomeKind.FAILED, failure=Planted((), reason).failure)


@st.composite
def with_odd_ones(draw: st.DrawFn) -> tuple[list[Row], int, Reason]:
    """What launches show of a limit, with a few that failed by chance: rows, where it begins, and its reason."""
    reason = draw(st.sampled_from([Reason.ASSERTION, Reason.KERNEL_ERROR, Reason.SERVER_HANG]))
    begins, other = draw(st.sampled_from(GRAPHS[2:])), draw(st.sampled_from([None, "a", "b"]))
    points = [POINTS[index] for index in draw(st.lists(st.integers(0, len(POINTS) - 1), min_size=10, unique=True))]
    odd = draw(st.sets(st.integers(0, len(points) - 1), max_size=2))
    rows: list[Row] = []
    for index, point in enumerate(points):
        strikes = _number(point["graph"]) >= _number(begins) and other in (None, point["backend"])
        rows.append((point, Rung.FULL, failed(reason) if strikes or index in odd else PASSED))
    return rows, int(_number(begins)), reason


def _number(value: Scalar) -> float:
    return float(value)


def _limits(found: DeadEnd) -> list[Condition]:
    return [each for each in found.conditions if each.comparison is not Comparison.EQUAL]


@settings(max_examples=250, deadline=None)
@given(with_odd_ones())
def test_two_failures_lie_at_each_limit_or_beyond(evidence: tuple[list[Row], int, Reason]) -> None:
    """Where one value less were claimed, two failures or more would stay without an explanation."""
    rows, _, _ = evidence
    for found in chart(numbered(rows), [], SPACE, FACTS).confirmed:
        assert found.policy is not Policy.DEAD_AT_ONCE
        for limit in _limits(found):
            others = tuple(each for each in found.conditions if each.comparison is Comparison.EQUAL)
            values = [value for value in GRAPHS if limit.matches({limit.parameter: value})]
            edge = values[0] if limit.comparison is Comparison.AT_LEAST else values[-1]
            beyond = Condition(
                parameter=limit.parameter,
                comparison=Comparison.AT_MOST if limit.comparison is Comparison.AT_LEAST else Comparison.AT_LEAST,
                value=edge,
            )
            at_it = [point for point, _, outcome in rows if outcome.failure is not None and beyond.matches(point)]
            assert sum(matches_all(others, point) for point in at_it) >= 2, (str(found), str(limit))


@settings(max_examples=150, deadline=None)
@given(with_odd_ones())
def test_what_failed_at_an_edge_is_on_the_map_and_blocks_no_more_than_it_has_to(
    evidence: tuple[list[Row], int, Reason],
) -> None:
    """Each edge widens a confirmed dead end, holds failures that are not in it, and no pass."""
    rows, _, _ = evidence
    atlas = chart(numbered(rows), [], SPACE, FACTS)
    labels = {f"#{index}": row for index, row in enumerate(rows)}
    for found in atlas.confirmed:
        for edge in atlas.edges_of(found):
            points = [labels[label][0] for label in edge.support]
            assert points
            assert all(edge.matches(point) and not found.matches(point) for point in points)
            assert not any(outcome.failure is None and edge.blocks(point) for point, _, outcome in rows)


@settings(max_examples=100, deadline=None)
@given(with_odd_ones())
def test_edges_are_a_function_of_the_trials_at_every_prefix(evidence: tuple[list[Row], int, Reason]) -> None:
    """Kept up to date, or charted anew: the same map, edges included."""
    trials: list[Trial] = numbered(evidence[0])
    charter = Charter(SPACE, FACTS)
    for end in range(1, len(trials) + 1):
        assert charter.chart(trials[:end], []) == chart(trials[:end], [], SPACE, FACTS)
