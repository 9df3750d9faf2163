"""Where a dead end begins is found out by launches, also where a failure at its edge may have been chance."""

from __future__ import annotations

from agent.outcome import Outcome, OutcomeKind
from agent.propose import second_launch, thresholds
from agent.reasons import Reason
from agent.store.trial import Kind, Trial, Work
from runners import Phase, Rung
from search_spaces import Comparison, Condition
from tests.support.limits import LONE, PASSED, SPACE, at_eight, at_most_two, failed, row
from tests.support.planted import Planted, Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import numbered

FAILS = failed()


def limit(value: int) -> Planted:
    """Return a cause that strikes from this value on, and that no message names."""
    at_least = Condition(parameter="graph", comparison=Comparison.AT_LEAST, value=value)
    return Planted((at_least,), Reason.ASSERTION, has_blames=False, at_probe=False)


def study_of(begins: int, *, has_lone: bool = True) -> SimulatedStudy:
    """Return a study that saw the largest graph fail, and by chance or not one at the edge."""
    rows = [*at_most_two(), *at_eight(FAILS), *([LONE] if has_lone else [])]
    return SimulatedStudy(Truth(SPACE, (limit(begins),)), budget=100, trials=numbered(rows))


def explored(study: SimulatedStudy) -> list[Work]:
    """Run what is asked about limits, and return it."""
    before = len(study.trials)
    for _ in range(20):
        work = next(thresholds.propose(study.history(), Rung.FULL), None)
        if work is None:
            return [trial.work for trial in study.trials[before:]]
        study.launch(work)
    raise AssertionError("it does not end")


def test_a_value_that_failed_once_by_chance_is_asked_once_more_elsewhere() -> None:
    """The launch shares with the failure as little as it can; it passes, and the limit stays."""
    study = study_of(8)
    (work,) = explored(study)
    assert (work.kind, work.resolved["graph"]) == (Kind.CONFIRM, 4)
    lone = LONE[0]
    assert not [name for name in lone if name != "graph" and work.resolved[name] == lone[name]]
    assert [str(found) for found in study.history().atlas.confirmed] == ["graph ≥ 8"]


def test_a_value_that_fails_again_belongs_to_the_dead_end() -> None:
    """One experiment settles it."""
    study = study_of(4)
    assert [work.resolved["graph"] for work in explored(study)] == [4]
    assert [str(found) for found in study.history().atlas.confirmed] == ["graph ≥ 4"]


def test_nothing_is_asked_twice_where_bisection_goes_on() -> None:
    """What lies beyond a value that failed once is asked first: a failure there speaks for both."""
    rows = [each for each in [*at_most_two(), *at_eight(FAILS), LONE] if each[0]["graph"] != 2]
    study = SimulatedStudy(Truth(SPACE, (limit(2),)), budget=100, trials=numbered(rows))
    assert [work.resolved["graph"] for work in explored(study)] == [2, 2]
    assert [str(found) for found in study.history().atlas.confirmed] == ["graph ≥ 2"]


def test_the_second_launch_of_a_failure_at_the_edge_is_that_of_the_limit() -> None:
    """The very same launch again would tell less."""
    history = study_of(8).history()
    assert second_launch.propose(history) is None
    assert next(thresholds.propose(history, Rung.FULL)).resolved["graph"] == 4


def test_an_edge_where_something_else_always_strikes_is_given_up() -> None:
    """Launches that end by another cause tell nothing: only so many are run."""
    other = failed(Reason.KERNEL_ERROR)

    def judge(trial: Trial, _before: int) -> Outcome:
        return other

    study = study_of(8)
    study.judge = judge
    asked = [work.resolved["graph"] for work in explored(study)]
    assert asked == [4] * thresholds.MOST_TIMES


def test_a_launch_is_looked_for_behind_the_contexts_that_lie_in_other_dead_ends() -> None:
    """However many working assignments cannot take the value over, one that can is found."""
    at_least = Condition(parameter="graph", comparison=Comparison.AT_LEAST, value=4)
    is_b = Planted((Condition(parameter="backend", value="b"), at_least), Reason.JIT_COMPILE_ERROR)
    early = is_b.failure.model_copy(update={"phase": Phase.COMPILE})
    dead = [
        row(Outcome(kind=OutcomeKind.FAILED, failure=early), "b", draft, graph, expert)
        for draft, graph, expert in ((2, 4, False), (3, 8, True), (1, 4, True))
    ]
    passed = [
        row(PASSED, "b", draft, graph, expert) for draft in (1, 2, 3) for graph in (0, 1, 2) for expert in (False, True)
    ]
    fails = [each for each in at_eight(FAILS) if each[0]["backend"] != "b"]
    one = row(PASSED, "a", 0, 0, False)
    rows = [*passed, one, *fails, row(FAILS, "d", 1, 8, False), row(FAILS, "c", 2, 8, False), *dead, LONE]
    study = SimulatedStudy(Truth(SPACE, (is_b, limit(8))), budget=100, trials=numbered(rows))
    assert {str(found) for found in study.history().atlas.confirmed} == {"backend = b ∧ graph ≥ 4", "graph ≥ 8"}
    assert [(work.resolved["graph"], work.resolved["backend"]) for work in explored(study)] == [(4, "a")]
