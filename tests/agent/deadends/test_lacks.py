"""What a cause may lack: failures that alone keep it short, where chance was seen to strike."""

from __future__ import annotations

import pytest

from agent.deadends.chance import Chance
from agent.deadends.charter import chart
from agent.deadends.evidence import Evidence
from agent.deadends.lacks import Lack, lacks_of, worth_beside
from agent.deadends.likelihood import Group
from agent.deadends.observation import observation_of
from agent.deadends.suspicion import Suspicion
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from runners import Phase
from search_spaces import Assignment, Comparison, Condition
from tests.support.dead_ends import dead
from tests.support.limits import PASSED, Row, row
from tests.support.planted import FACTS, Planted, small_space
from tests.support.strategies import numbered

SPACE = small_space()
WITH_GRAPH = Condition(parameter="graph", comparison=Comparison.AT_LEAST, value=1)
NO_GRAPH = Condition(parameter="graph", value=0)


def failed(reason: Reason = Reason.COLLECTIVE_TIMEOUT, *blames: str) -> Outcome:
    """Return a failure."""
    failure = Planted((), reason).failure.model_copy(update={"phase": Phase.WARMUP, "blames": blames})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def beside(failure: Outcome, graph: int) -> list[Row]:
    """Return launches with other backends that pass, and one of them that fails once and passes once."""
    passing = [
        row(PASSED, backend, draft, graph, expert)
        for backend in ("a", "c")
        for draft, graph, expert in ((0, 8, False), (1, 0, True), (2, 1, False), (3, 2, True), (2, 4, False))
    ]
    return [*passing, *(row(outcome, "a", 3, graph, True) for outcome in (failure, PASSED))]


def inside(failure: Outcome, *without: tuple[int, int, bool]) -> list[Row]:
    """Return launches of `backend = d` that fail: ten with a graph, and these."""
    points = [
        *(
            (draft, graph, expert)
            for draft, graph in ((1, 1), (3, 4), (0, 8), (2, 2), (3, 1))
            for expert in (False, True)
        ),
        *without,
    ]
    return [row(failure, "d", *point) for point in points]


def told(rows: list[Row]) -> tuple[list[str], list[Suspicion]]:
    """Return what is confirmed, in words, and what is suspected of `backend = d`."""
    atlas = chart(numbered(rows), [], SPACE, FACTS)
    backend = Condition(parameter="backend", value="d")
    return [str(found) for found in atlas.confirmed], [
        each for each in atlas.suspicions if backend in each.best.conditions
    ]


def test_one_failure_where_chance_was_seen_does_not_keep_a_cause_short() -> None:
    """`backend = d ∧ graph ≥ 1` beside one failure by chance at `graph = 0` says as much as `backend = d`."""
    confirmed, (suspicion,) = told([*beside(failed(), 0), *inside(failed(), (0, 0, False))])
    assert confirmed == []
    assert [each.condition for each in suspicion.lacks] == [WITH_GRAPH]
    assert suspicion.lacks[0].places[0][0] == NO_GRAPH
    assert suspicion.is_clear


def test_failures_enough_do_even_there() -> None:
    """Chance at its rate would not have hit all of them."""
    without = [(0, 0, False), (3, 0, True), (1, 0, True), (2, 0, False)]
    assert told([*beside(failed(), 0), *inside(failed(), *without)])[0] == ["backend = d"]


def test_where_chance_was_not_seen_fewer_do() -> None:
    """What came and went at `graph = 4` says little about `graph = 0`."""
    without = [(0, 0, False), (2, 0, False)]
    assert told([*beside(failed(), 0), *inside(failed(), *without)])[0] == []
    assert told([*beside(failed(), 4), *inside(failed(), *without)])[0] == ["backend = d"]


def test_what_is_dead_at_once_knows_no_chance() -> None:
    """Nothing of it comes and goes."""
    failure = failed(Reason.UNSUPPORTED_ARCH)
    assert told(inside(failure, (0, 0, False)))[0] == ["backend = d"]


@pytest.mark.parametrize(
    ("point", "is_there", "is_without"),
    [
        ({"graph": 0, "expert": True}, True, True),
        ({"graph": 0, "expert": False}, False, True),
        ({"graph": 2, "expert": True}, True, False),
    ],
)
def test_a_failure_without_the_condition_tells_most_where_chance_was_not_seen(
    point: Assignment, is_there: bool, is_without: bool
) -> None:
    """With the condition it tells nothing: the longer cause explains it, too."""
    expert = Condition(parameter="expert", value=True)
    worth = worth_beside([Lack(WITH_GRAPH, ((expert, 2.0, -0.9),))], point)
    assert worth == pytest.approx((0.9 if is_there else 2.0) if is_without else 0.0)


def test_what_is_dead_without_the_condition_needs_no_launch() -> None:
    """Nobody can tell there, and nothing that works is ruled out."""
    evidence = Evidence(SPACE, FACTS)
    for trial in numbered([*beside(failed(), 0), *inside(failed(), (0, 0, False))]):
        observation = observation_of(trial, SPACE)
        assert observation is not None
        evidence.add(observation)
        evidence.note_values(trial.work.requested, observation.assignment)
    failures = evidence.reasons[Reason.COLLECTIVE_TIMEOUT].failures
    by_chance = 1 << failures[0].index
    covered = sum(1 << each.index for each in failures) & ~by_chance
    cause = (evidence.lexicon.satisfied("backend", "d")[0],)
    strike = dead(NO_GRAPH, reason=Reason.UNSUPPORTED_ARCH)
    chance, others = Chance(failures[-1], evidence, by_chance), (Group(by_chance, 0.0),)
    assert [each.condition for each in lacks_of(chance, None, cause, covered, others)] == [WITH_GRAPH]
    assert lacks_of(chance, [strike], cause, covered, others) == []
