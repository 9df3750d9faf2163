"""Where chance at one condition is in the way of a clear cause, that condition is launched without the cause."""

from __future__ import annotations

import pytest

from agent.deadends.rivals import Rival, worth_beside
from agent.propose import experiments
from agent.reasons import Reason
from runners import Rung
from search_spaces import Assignment, Condition
from tests.support.limits import PASSED, SPACE, Row, failed, row
from tests.support.planted import Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import numbered

B, EXPERT = Condition(parameter="backend", value="b"), Condition(parameter="expert", value=True)
FAILS = [
    row(failed(Reason.SERVER_HANG), "b", draft, graph, True)
    for draft, graph in ((0, 0), (1, 1), (2, 2), (3, 4), (0, 8), (1, 4), (2, 0), (3, 2), (0, 2), (1, 8), (2, 1), (3, 0))
]
WITH_EXPERT = [
    row(PASSED, backend, draft, graph, True)
    for backend in ("a", "c", "d")
    for draft, graph in ((0, 8), (1, 0), (2, 1), (3, 2), (2, 4), (1, 8))
]
WITHOUT = [row(PASSED, "a", 0, 1, False), row(PASSED, "c", 3, 8, False), row(PASSED, "d", 1, 0, False)]


def asked(rows: list[Row]) -> list[Assignment]:
    """Return the launches that the map asks for."""
    trials = numbered(rows)
    history = SimulatedStudy(Truth(SPACE), budget=400, trials=trials).history()
    return [work.resolved for work in experiments.propose(history, Rung.FULL)]


def test_the_condition_at_which_few_launches_passed_is_launched_without_the_other_one() -> None:
    """`backend = b` passed once: that all of the failures are a source there is what is left to exclude."""
    (point,) = asked([*FAILS[:10], *WITH_EXPERT, *WITHOUT, row(PASSED, "b", 2, 4, False)])
    assert (point["backend"], point["expert"]) == ("b", False)


def test_where_many_passed_the_cause_itself_is_launched_again() -> None:
    """Then one more failure tells more."""
    passed = [
        row(PASSED, "b", draft, graph, False) for draft, graph in ((0, 0), (1, 1), (2, 2), (3, 4), (0, 8), (1, 4))
    ]
    (point,) = asked([*FAILS[:4], *WITH_EXPERT, *WITHOUT, *passed])
    assert (point["backend"], point["expert"]) == ("b", True)


def test_while_the_search_is_early_what_is_clear_but_for_chance_waits() -> None:
    """It is not launched anyway, and keeps the search away from nothing that works."""
    trials = numbered([*FAILS[:10], *WITH_EXPERT, *WITHOUT, row(PASSED, "b", 2, 4, False)])
    history = SimulatedStudy(Truth(SPACE), budget=400, trials=trials).history()
    assert history.atlas.match({"backend": "b", "draft": 3, "graph": 8, "expert": True}) is not None
    assert [*experiments.propose(history, Rung.FULL)] != []
    assert [*experiments.propose(history, Rung.FULL, is_early=True)] == []


def test_a_pass_is_worth_what_it_takes_from_the_likeliest_rival() -> None:
    """Of two rivals, what says nothing of the likeliest one tells nothing."""
    likely, other = Rival((B,), 2.0, -0.4, -1.0), Rival((EXPERT,), 1.0, -0.4, -0.8)
    point: Assignment = {"backend": "b", "draft": 0, "graph": 0, "expert": False}
    assert worth_beside((likely, other), point) == pytest.approx(2.5)
    assert worth_beside((likely, other), {**point, "backend": "a", "expert": True}) == 0.0
    assert worth_beside((Rival((B,), -1.0, -0.4, -1.0),), point) == 0.0
