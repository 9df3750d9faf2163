"""Node time that was not spent: what counts, what it is reckoned with, and that nothing is claimed twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent.deadends.charter import Charter
from agent.node_time import node_time_markdown, saved_table, spent_table
from agent.outcome import Outcome, OutcomeKind
from agent.propose.history import History
from agent.reasons import Reason
from agent.saved import Saved, saved_in
from agent.store.trial import Kind, Trial
from agent.summary import summarise
from runners import Measurement, Phase, Rung, RunRecord
from runners.contract import Exit
from search_spaces import Scalar
from tests.support.laddered import LadderedRunner
from tests.support.planted import FACTS, Planted, small_space
from tests.support.simulated_study import LEASE, START, settings
from tests.support.stores import work

PHASES = {Phase.SPAWN: 10.0, Phase.LOAD_WEIGHTS: 60.0, Phase.WARMUP: 5.0, Phase.SERVE: 100.0}
CAPTURE_FAILS = Planted((), Reason.CUDA_GRAPH_INCOMPATIBLE).failure.model_copy(update={"phase": Phase.LOAD_WEIGHTS})
REFUSED = Planted((), Reason.CONFIG_INVALID).failure.model_copy(update={"phase": Phase.RESOLVE})
OUT_OF_MEMORY = Planted((), Reason.GPU_OOM).failure


def trial(
    number: int,
    rung: Rung,
    seconds: float,
    outcome: Outcome,
    *,
    climbs: bool = False,
    phase_s: Mapping[Phase, float] = PHASES,
    **changes: Scalar,
) -> Trial:
    """A closed trial of the default with changes."""
    kind = Kind.SEARCH if rung is Rung.FULL else Kind.PROBE
    measured = Measurement(levels=()) if outcome.kind is OutcomeKind.MEASURED else None
    return Trial(
        study="study",
        number=number,
        work=work(kind, **changes).model_copy(update={"rung": rung, "climbs": climbs}),
        cookie="c",
        lease=LEASE,
        started_at=START,
        closed_at=START,
        outcome=outcome,
        record=RunRecord(
            exit=Exit(code=0), phase=Phase.STOP, wall_s=seconds, measurement=measured, phase_s=dict(phase_s)
        ),
    )


WORKED = Outcome(kind=OutcomeKind.MEASURED, value=100.0)
DIED = Outcome(kind=OutcomeKind.FAILED, failure=CAPTURE_FAILS)
LAUNCHES = (trial(0, Rung.FULL, 175.0, WORKED), trial(1, Rung.FULL, 175.0, WORKED, draft=3))


def history(launches: tuple[Trial, ...], checks: tuple[Trial, ...]) -> History:
    """A study of these trials."""
    return History(
        settings=settings(),
        space=small_space(),
        facts=FACTS,
        runner=LadderedRunner(),
        trials=launches,
        probes=tuple(each for each in checks if each.work.rung is Rung.PROBE),
        checks=tuple(each for each in checks if each.work.rung is not Rung.PROBE),
        atlas=Charter(small_space(), FACTS).chart(launches, checks),
        budget=40,
    )


def at(found: Saved, rung: Rung) -> tuple[int, float, float, int]:
    """What a rung spared: launches, their seconds, what its questions took, and what it found besides."""
    each = next(each for each in found.ladder if each.rung is rung)
    return each.launches, each.launches_s, each.checks_s, each.found


def test_a_launch_is_spared_where_it_was_due_and_a_cheaper_rung_closed_it() -> None:
    """It would have died after 70 s, at the end of the phase; all questions on the way count as cost."""
    asked = (
        trial(0, Rung.DUMMY, 20.0, WORKED, climbs=True),
        trial(1, Rung.DUMMY, 15.0, DIED, climbs=True, backend="b"),
        trial(2, Rung.DUMMY, 15.0, DIED, backend="c"),
    )
    found = saved_in(history(LAUNCHES, asked), {})
    assert at(found, Rung.DUMMY) == (1, 70.0, 35.0, 1)
    assert (found.num_spared, found.ladder_s) == (1, 35.0)


def test_what_a_study_saw_of_such_failures_goes_before_the_usual_phases() -> None:
    seen = trial(2, Rung.FULL, 300.0, DIED, backend="d")
    asked = (
        trial(0, Rung.DUMMY, 15.0, WORKED, climbs=True),
        trial(1, Rung.DUMMY, 15.0, DIED, climbs=True, backend="b"),
    )
    assert at(saved_in(history((*LAUNCHES, seen), asked), {}), Rung.DUMMY)[1] == 300.0


def test_arguments_that_are_refused_spare_no_more_than_the_start_of_a_launch() -> None:
    refused = Outcome(kind=OutcomeKind.FAILED, failure=REFUSED)
    asked = (
        trial(0, Rung.RESOLVE, 0.1, WORKED, climbs=True),
        trial(1, Rung.RESOLVE, 0.1, refused, climbs=True, backend="b"),
    )
    assert at(saved_in(history(LAUNCHES, asked), {}), Rung.RESOLVE) == (1, 10.0, 0.2, 0)


def test_an_assignment_that_was_launched_after_all_spared_nothing() -> None:
    asked = (
        trial(0, Rung.DUMMY, 20.0, WORKED, climbs=True),
        trial(1, Rung.DUMMY, 15.0, DIED, climbs=True, draft=3),
    )
    assert at(saved_in(history(LAUNCHES, asked), {}), Rung.DUMMY) == (0, 0.0, 35.0, 0)


def test_an_assignment_counts_at_the_first_rung_that_closed_it() -> None:
    asked = (
        trial(0, Rung.PROBE, 1.0, DIED, climbs=True, backend="b"),
        trial(1, Rung.DUMMY, 15.0, DIED, climbs=True, backend="b"),
    )
    found = saved_in(history(LAUNCHES, asked), {})
    assert [at(found, rung)[0] for rung in (Rung.PROBE, Rung.DUMMY)] == [1, 0]


def test_a_rung_that_cost_more_than_it_spared_says_so() -> None:
    asked = (trial(0, Rung.DUMMY, 90.0, WORKED, climbs=True), trial(1, Rung.DUMMY, 15.0, DIED, climbs=True, draft=1))
    summary = summarise(history(LAUNCHES, asked), "study")
    assert summary.saved.ladder_s == pytest.approx(70.0 - 105.0)
    assert "-35 s by cheaper rungs (1 launch)" in summary.saved.words()
    assert "-35 s" in node_time_markdown(summary)


def test_the_map_saves_what_failures_of_its_reason_take() -> None:
    """Launches that lie in a dead end would have failed: a working launch's time would be too much."""
    dead = Outcome(kind=OutcomeKind.FAILED, failure=OUT_OF_MEMORY)
    launches = (*LAUNCHES, *(trial(n, Rung.FULL, 40.0, dead, graph=8, draft=n) for n in (1, 2, 3)))
    study = history(launches, ())
    counts = {each.id: {"full": 2} for each in study.atlas.dead_ends}
    assert counts
    found = saved_in(study, counts | {"D000000": {"full": 5}})
    assert found.map_s == 40.0 * 2 * (len(counts))
    assert found.ruled_out == {"full": 2 * len(counts)}, "what is no longer on the map counts nowhere"


def test_a_study_without_any_of_it_has_no_word_on_it() -> None:
    summary = summarise(history(LAUNCHES, ()), "study")
    assert (summary.saved.words(), saved_table(summary).rows) == ("", ())


def test_node_time_is_told_by_rung_and_outcome() -> None:
    asked = (trial(0, Rung.DUMMY, 20.0, WORKED), trial(1, Rung.DUMMY, 15.0, DIED, backend="b"))
    table = spent_table(summarise(history(LAUNCHES, asked), "study"))
    assert table.titles == ("spent on", "measured", "failed", "all")
    assert table.rows == (("2 dummy launches", "20 s", "15 s", "35 s"), ("2 launches", "6 min", "", "6 min"))


def test_a_modelled_study_says_that_saved_time_is_the_model_s() -> None:
    asked = (trial(0, Rung.DUMMY, 20.0, WORKED, climbs=True), trial(1, Rung.DUMMY, 15.0, DIED, climbs=True, draft=1))
    summary = summarise(history(LAUNCHES, asked), "study")
    assert "times of the model" in node_time_markdown(replace(summary, modelled="a-node"))
    assert "times of the model" not in node_time_markdown(summary)
