"""Which launches are looked at as experiments: those that may run are not hidden behind those that may not."""

from __future__ import annotations

import itertools

from agent.deadends.charter import chart
from agent.outcome import Outcome, OutcomeKind
from agent.propose import experiment_points
from agent.reasons import Reason
from runners import Phase, Rung
from search_spaces import Condition
from tests.support.limits import PASSED, SPACE, row
from tests.support.planted import FACTS, Planted, Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import numbered

B, EXPERT = Condition(parameter="backend", value="b"), Condition(parameter="expert", value=True)


def outcome(reason: Reason, phase: Phase, *conditions: Condition) -> Outcome:
    """Return a failure in a phase that names the parameters of the conditions."""
    failure = Planted(conditions, reason).failure.model_copy(update={"phase": phase})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def test_contexts_in_which_the_likeliest_cause_cannot_run_come_last() -> None:
    """More than eight of them differ most from the failure, and all are dead with its value: another one is taken."""
    early = outcome(Reason.TOPOLOGY_UNSUPPORTED, Phase.SPAWN, B, EXPERT)
    dead = [row(early, "b", draft, graph, True) for draft, graph in ((0, 0), (1, 8), (2, 1))]
    others = itertools.product("acd", (0, 1, 2), (0, 1))
    passed = [row(PASSED, backend, draft, graph, True) for backend, draft, graph in others]
    alive = [row(PASSED, "a", 3, 8, False), row(PASSED, "c", 3, 8, False)]
    fails = row(outcome(Reason.UNSUPPORTED_ARCH, Phase.COMPILE), "b", 3, 8, False)
    trials = numbered([*passed, *alive, *dead, fails])
    atlas = chart(trials, [], SPACE, FACTS)
    assert [str(found) for found in atlas.confirmed] == ["backend = b ∧ expert = true"]
    history = SimulatedStudy(Truth(SPACE), budget=100, trials=trials).history()
    (suspicion,) = history.atlas.suspicions
    assert str(suspicion.best.conditions[0]) == "backend = b"
    points = list(experiment_points.candidates(history, suspicion, Rung.FULL))
    assert [point for point in points if point["expert"] is False and point["backend"] == "b"]
