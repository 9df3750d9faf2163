"""The ladder in single studies: what climbs where, what is believed, and what a study does that stops below the top."""

from __future__ import annotations

from agent.deadends.charter import chart
from agent.deadends.dead_end import DeadEndState
from agent.outcome import Outcome, OutcomeKind
from agent.propose.order import Stop
from agent.reasons import Reason
from agent.rungs import cost_words, costs_of
from agent.store.trial import Kind
from runners import Phase, Rung
from tests.properties.test_ladder import equal
from tests.support.laddered import LadderedStudy, LadderedTruth
from tests.support.planted import FACTS, Planted, small_space
from tests.support.strategies import numbered

SPACE = small_space()
DEAD_B = Planted((equal("backend", "b"),), Reason.CONFIG_INVALID)


def test_what_the_engine_refuses_costs_no_launch_and_is_on_the_map() -> None:
    study = LadderedStudy(LadderedTruth(SPACE, (DEAD_B,), (Rung.RESOLVE,)), budget=20)
    study.run()
    assert not any(trial.work.resolved["backend"] == "b" for trial in study.trials)
    found = [each for each in study.history().atlas.dead_ends if each.reason is Reason.CONFIG_INVALID]
    assert found and {each.rung for each in found} == {Rung.RESOLVE}


def test_the_first_dummy_launch_is_of_what_serves() -> None:
    """It shows that the rung works here before anything is believed of it."""
    planted = Planted((equal("expert", True),), Reason.ASSERTION)
    study = LadderedStudy(LadderedTruth(SPACE, (planted,), (Rung.DUMMY,)), budget=20)
    study.run()
    dummies = [trial for trial in study.probes if trial.work.rung is Rung.DUMMY]
    served = [trial for trial in study.trials if trial.is_measured and trial.started_at < dummies[0].started_at]
    assert dummies[0].work.resolved in [trial.work.resolved for trial in served]


def test_a_rung_at_which_nothing_passes_closes_nothing() -> None:
    """A dummy launch that cannot work at all must not take the search with it."""
    always = Planted((equal("draft", 2),), Reason.ASSERTION)  # the default's draft length
    truth = LadderedTruth(SPACE, (), (), ((always, Rung.DUMMY), (always, Rung.RESOLVE)))
    study = LadderedStudy(truth, budget=16)
    stop = study.run()
    assert stop is not None and not stop.nothing_works
    assert study.trials[0].is_measured
    assert study.trials[0].work.kind is Kind.DEFAULT


def test_a_contradiction_takes_the_rung_s_weight_for_that_reason() -> None:
    """It failed when resolved and serves all the same: such refusals are not believed any more."""
    only_resolved = Planted((equal("expert", True),), Reason.CONFIG_INVALID)
    study = LadderedStudy(LadderedTruth(SPACE, (), (), ((only_resolved, Rung.RESOLVE),)), budget=16)
    study.run()
    refused = next(trial for trial in study.probes if trial.is_failed)
    assert (Rung.RESOLVE, Reason.CONFIG_INVALID) not in study.history().atlas.weightless
    study.launch(refused.work.model_copy(update={"kind": Kind.SEARCH, "rung": Rung.FULL}))
    atlas = study.history().atlas
    found = atlas.contradictions[0]
    assert (found.rung, found.reason, found.passed_below, found.is_certain) == (
        Rung.RESOLVE,
        Reason.CONFIG_INVALID,
        False,
        True,
    )
    assert (Rung.RESOLVE, Reason.CONFIG_INVALID) in atlas.weightless
    assert atlas.in_state(DeadEndState.CONFIRMED, DeadEndState.SUSPECTED) == ()


def test_a_launch_that_dies_of_what_a_dummy_claims_to_find_is_a_contradiction() -> None:
    """The rung misses some of these failures; what it refuses is as true as before."""
    planted = Planted((equal("graph", 8),), Reason.UNSUPPORTED_ARCH)
    study = LadderedStudy(LadderedTruth(SPACE, (planted,), (Rung.FULL,)), budget=6)
    study.run()
    point = {**study.history().default, "graph": 8}
    work = study.trials[0].work
    for rung, kind in ((Rung.DUMMY, Kind.PROBE), (Rung.FULL, Kind.SEARCH)):
        study.launch(work.model_copy(update={"rung": rung, "kind": kind, "requested": point, "resolved": point}))
    found = next(each for each in study.history().atlas.contradictions if each.rung is Rung.DUMMY)
    assert found.passed_below and found.is_certain
    atlas = study.history().atlas
    assert (Rung.DUMMY, Reason.UNSUPPORTED_ARCH) in atlas.missed
    assert (Rung.DUMMY, Reason.UNSUPPORTED_ARCH) not in atlas.weightless


def test_one_refusal_that_comes_late_takes_no_dead_end_away() -> None:
    """An assignment that resolves and is refused by the engine all the same: the other refusals stand."""
    default, passed = SPACE.default_on(FACTS), Outcome(kind=OutcomeKind.MEASURED, value=1.0)
    refusal = DEAD_B.failure.model_copy(update={"phase": Phase.RESOLVE})
    refused = Outcome(kind=OutcomeKind.FAILED, failure=refusal)
    late = Planted((equal("expert", True),), Reason.CONFIG_INVALID).failure.model_copy(update={"phase": Phase.SPAWN})
    rows = [
        ({**default, "backend": "b"}, Rung.RESOLVE, refused),
        ({**default, "backend": "b", "draft": 0, "graph": 0, "expert": True}, Rung.RESOLVE, refused),
        ({**default, "expert": True}, Rung.RESOLVE, passed),
        ({**default, "expert": True}, Rung.FULL, Outcome(kind=OutcomeKind.FAILED, failure=late)),
    ]
    atlas = chart(numbered(rows), [], SPACE, FACTS)
    assert [(found.rung, found.passed_below) for found in atlas.contradictions] == [(Rung.RESOLVE, True)]
    assert (Rung.RESOLVE, Reason.CONFIG_INVALID) in atlas.missed
    assert [str(found) for found in atlas.confirmed] == ["backend = b"]


def test_a_study_that_starts_at_the_top_asks_no_cheaper_rung() -> None:
    study = LadderedStudy(LadderedTruth(SPACE, (DEAD_B,), (Rung.RESOLVE,)), budget=12, start_rung=Rung.FULL)
    study.run()
    assert study.probes == []


def test_a_study_that_stops_at_a_lower_rung_launches_nothing_and_ends_with_what_it_learned() -> None:
    for top in (Rung.RESOLVE, Rung.PROBE, Rung.DUMMY):
        study = LadderedStudy(LadderedTruth(SPACE, (DEAD_B,), (Rung.RESOLVE,)), budget=10, max_rung=top)
        stop = study.run()
        assert isinstance(stop, Stop)
        assert (stop.nothing_works, stop.resumable) == (False, False)
        assert f"stops at the {top.value} rung" in stop.why
        assert study.trials == []
        assert max(list(Rung).index(trial.work.rung) for trial in study.probes) == list(Rung).index(top)
        assert sum(trial.work.rung is Rung.DUMMY for trial in study.probes) <= 10


def test_what_the_rungs_cost_is_told_apart() -> None:
    study = LadderedStudy(LadderedTruth(SPACE, (DEAD_B,), (Rung.RESOLVE,)), budget=12)
    study.run()
    costs = costs_of([*study.trials, *study.probes])
    assert costs[Rung.FULL].closed == 12
    assert costs[Rung.RESOLVE].failed > 0
    cheap = sum(cost.node_s for rung, cost in costs.items() if rung is not Rung.FULL)
    assert cheap <= 0.2 * 12 * 2.0 + 1.0
    assert "resolved (" in cost_words(costs)
    assert "launches" not in cost_words(costs).replace("dummy launches", "")
