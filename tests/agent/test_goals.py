"""What is searched for: figures, several at once, and the front of those of which none is better in all."""

from __future__ import annotations

import math
import random
from pathlib import Path

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.front import front, violations
from agent.goals import OUTPUT, Goal, compromise, figures_of, goal_of
from agent.judge import scored
from agent.outcome import Outcome, OutcomeKind
from agent.propose.scalarise import scalars, weights_of
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore
from agent.summary import arms_of, summarise
from runners import Exit, Latency, LevelMeasurement, Measurement, Phase, RunRecord, Workload
from runners.goodput import Goodput, Limit
from search_spaces import NodeModel
from tests.support.modelled_study import ModelledStudy
from tests.support.simulated_study import LEASE
from tests.support.small_node import small_node
from tests.support.stores import manifest, work

GOALS = (Goal(figure="output_tok_per_s", level=8), Goal(figure="tpot_ms_p50", level=1))
LIMIT = Limit(figure="ttft_ms", percentile=90, at_most=100)


def level(concurrency: int, rate: float, tpot_ms: float, within: float = 1.0) -> LevelMeasurement:
    latency = Latency(p50=tpot_ms, p99=2 * tpot_ms)
    return LevelMeasurement(
        concurrency=concurrency,
        output_tok_per_s=rate,
        ttft_ms=latency,
        tpot_ms=latency,
        step_ms_p50=1.0,
        verify_steps_per_s=1.0,
        acceptance_length=1.0,
        requests_per_s=rate / 100,
        goodput=Goodput(
            requests_per_s=within * rate / 100, output_tok_per_s=within * rate, within={LIMIT.name: within}
        ),
    )


def record(*levels: LevelMeasurement) -> RunRecord:
    return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, measurement=Measurement(levels=levels))


BOTH = Measurement(levels=(level(1, 100.0, 10.0), level(8, 400.0, 20.0)))


@pytest.mark.parametrize(
    ("written", "figure"),
    [
        ("output_tok_per_s", 200.0),
        ("output_tok_per_s@8", 400.0),
        ("tpot_ms_p50@1", 10.0),
        ("ttft_ms_p99", math.sqrt(20 * 40)),
        ("goodput_req_per_s@8", 4.0),
    ],
)
def test_a_goal_reads_its_figure(written: str, figure: float) -> None:
    """At its level, or as the geometric mean over all levels."""
    goal = goal_of(written)
    assert goal.name == written
    assert goal.of(BOTH) == pytest.approx(figure)


@pytest.mark.parametrize("written", ["", "speed", "tpot_ms_p50@", "tpot_ms_p50@x", "output_tok_per_s 8"])
def test_what_is_no_goal_is_refused_with_those_there_are(written: str) -> None:
    with pytest.raises(ValueError, match="is no objective: write one of output_tok_per_s"):
        goal_of(written)


def test_a_figure_that_was_not_measured_is_none() -> None:
    """An engine of somebody's own may measure less; a level may be missing."""
    bare = BOTH.levels[0].model_copy(update={"goodput": None, "e2e_ms": None})
    found = Measurement(levels=(bare,))
    for written in ("goodput_tok_per_s", "e2e_ms_p50", "output_tok_per_s@8"):
        assert goal_of(written).of(found) is None
    outcome = scored(Outcome(kind=OutcomeKind.MEASURED, value=1.0), record(bare), [goal_of("e2e_ms_p50")])
    assert outcome.kind is OutcomeKind.INTERRUPTED and "measured no e2e_ms_p50" in outcome.note


def test_hopeless_goodput_still_tells_what_is_nearer_to_the_limits() -> None:
    """It is never nothing, and less than a hundredth of the rate."""
    goal = goal_of("goodput_tok_per_s")
    none, some = (
        goal.of(
            Measurement(
                levels=(
                    level(1, 100.0, 10.0).model_copy(
                        update={"goodput": Goodput(requests_per_s=0, output_tok_per_s=0, within={"ttft_ms": share})}
                    ),
                )
            )
        )
        for share in (0.0, 0.5)
    )
    assert none is not None and some is not None and 0 < none < some <= 1.0


def test_an_outcome_of_several_goals_has_each_figure_and_their_compromise() -> None:
    measured = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
    found = scored(measured, record(*BOTH.levels), GOALS)
    assert dict(found.figures) == {"output_tok_per_s@8": 400.0, "tpot_ms_p50@1": 10.0}
    assert found.value == pytest.approx(math.sqrt(400.0 / 10.0)) == compromise((400.0, 10.0), GOALS)
    assert scored(measured, record(*BOTH.levels), (OUTPUT,)).value == pytest.approx(200.0)
    failed = Outcome(kind=OutcomeKind.SLOWER, value=7.0)
    assert scored(failed, record(*BOTH.levels), GOALS) == failed


rows = st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=1, max_size=12)


@given(rows)
def test_the_front_holds_all_that_nothing_dominates_and_nothing_else(found: list[tuple[float, float]]) -> None:
    """As Optuna has it: more of the first goal, less of the second."""
    figures = {str(number): row for number, row in enumerate(found)}
    study = optuna.create_study(directions=["maximize", "minimize"])
    for row in found:
        study.add_trial(optuna.trial.create_trial(values=list(row)))
    assert set(front(figures, GOALS)) == {str(trial.number) for trial in study.best_trials}


@given(rows, st.integers(0, 1000))
def test_weights_and_scalars_are_pure_and_a_better_row_never_has_less(found: list[tuple[float, float]], i: int) -> None:
    weights = weights_of(2, 7, i)
    assert weights == weights_of(2, 7, i) and max(weights) == 1.0 and min(weights) > 0
    values = scalars(found, weights)
    assert all(0 < value <= 1 + 1e-9 for value in values)
    for one, value in zip(found, values, strict=True):
        for other, theirs in zip(found, values, strict=True):
            if all(mine >= yours for mine, yours in zip(one, other, strict=True)):
                assert value >= theirs * (1 - 1e-9)


def test_over_a_study_every_point_of_a_front_is_the_best_under_some_weights() -> None:
    """Also those in a hollow of it, which no weighted sum would ever choose."""
    hollow = [(1.0, 10.0), (2.2, 3.0), (10.0, 1.0)]
    chosen = set()
    for index in range(40):
        values = scalars(hollow, weights_of(2, 0, index))
        chosen.add(values.index(max(values)))
    assert chosen == {0, 1, 2}


def test_a_study_of_several_goals_is_one_for_optuna_too(tmp_path: Path) -> None:
    """Directions, values and constraints: its own best trials are the feasible front."""
    described = manifest()
    settings = described.settings.model_copy(update={"goals": GOALS, "workload": Workload(slo=(LIMIT,))})
    described = described.model_copy(update={"settings": settings})
    url = f"sqlite:///{tmp_path / 'study.db'}"
    store = StudyStore.create(open_storage(url), url, described)
    launches = [((1, 100, 10), 1.0), ((1, 90, 5), 0.95), ((1, 80, 20), 1.0), ((1, 500, 1), 0.5)]
    for number, ((concurrency, rate, tpot), within) in enumerate(launches):
        found = record(level(concurrency, rate, tpot, within), level(8, rate, tpot, within))
        outcome = scored(Outcome(kind=OutcomeKind.MEASURED, value=1.0), found, GOALS)
        trial = store.open_trial(work(draft=number), "cookie", LEASE, "")
        store.close(trial, outcome, found)
    study = optuna.load_study(study_name="study", storage=url)
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert [trial.values for trial in study.trials] == [[100, 10], [90, 5], [80, 20], [500, 1]]
    assert study.trials[3].constraints == {"ttft_ms.p90@1": pytest.approx(0.4), "ttft_ms.p90@8": pytest.approx(0.4)}
    assert sorted(trial.number for trial in study.best_trials) == [0, 1]
    assert StudyStore(open_storage(url), url, "study").trials() == store.trials()


def test_violations_name_limit_and_level() -> None:
    found = violations(Measurement(levels=(level(1, 1.0, 1.0, 0.8), level(8, 1.0, 1.0, 0.95))), [LIMIT])
    assert found == {"ttft_ms.p90@1": pytest.approx(0.1), "ttft_ms.p90@8": pytest.approx(-0.05)}


def of_goals(node: NodeModel) -> ModelledStudy:
    return ModelledStudy(node=node, budget=14, goals=(goal_of("output_tok_per_s@8"), goal_of("tpot_ms_p50@1")))


def test_a_study_of_several_goals_ends_with_a_front_and_goes_on_where_it_was_killed() -> None:
    """Weights hang on the seed and the number of closed launches alone."""
    node = small_node()
    undisturbed = of_goals(node)
    undisturbed.run()
    killed = of_goals(node)
    killed.run(steps=random.Random(0).randint(6, 12))
    resumed = killed.resumed()
    resumed.run()
    assert [t.outcome for t in resumed.trials if t.counts] == [t.outcome for t in undisturbed.trials if t.counts]
    history = undisturbed.history()
    found = summarise(history, "study")
    assert found.front and all(each.keeps_limits for each in found.front)
    keys = {
        arm.first.work.key: figures_of(arm.first.record.measurement, undisturbed.goals)
        for arm in arms_of(history.trials)
    }  # type: ignore[union-attr]
    assert {each.arm.first.work.key for each in found.front} <= set(keys)
    assert found.gain is not None and found.gain > 0
