"""Studies in which launches are stopped early: they go on as if nobody had interrupted them, and learn from it."""

from __future__ import annotations

import math

import pytest

from agent.deadends.charter import chart
from agent.deadends.refutations import with_refutations
from agent.outcome import Outcome, OutcomeKind
from agent.propose import sums
from agent.propose.improve import Improvement
from agent.reasons import Reason
from agent.recorded import recorded_lines
from agent.spread import Spread
from agent.summary import summarise
from runners import Rung
from search_spaces import NodeModel, assignment_key
from tests.support.lives import split, two_failures
from tests.support.modelled_study import ModelledStudy
from tests.support.planted import FACTS, small_space
from tests.support.small_node import small_node
from tests.support.stores import manifest
from tests.support.strategies import numbered

BUDGET = 16
KNOWN = Spread(variance=0.01**2, freedom=20)


def node() -> NodeModel:
    """Return a node on which launches differ little and settings much."""
    return small_node(noise={"launch_sd": 0.01, "request_sd": 0.02, "probe_sd": 0.01})


def study() -> ModelledStudy:
    return ModelledStudy(node=node(), budget=BUDGET, known_spread=KNOWN)


@pytest.fixture(scope="module")
def undisturbed() -> ModelledStudy:
    """A study from beginning to end."""
    found = study()
    found.run()
    return found


def closed(found: ModelledStudy) -> list[tuple[str, Outcome | None]]:
    """Return identity and outcome of everything that counts, in order."""
    return [(t.work.identity, t.outcome) for t in (*found.trials, *found.probes) if t.counts]


def test_some_launches_are_stopped_and_use_up_budget_like_the_others(undisturbed: ModelledStudy) -> None:
    slower = [trial for trial in undisturbed.trials if trial.is_slower]
    assert slower
    assert len([trial for trial in undisturbed.trials if trial.counts]) == BUDGET
    summary = summarise(undisturbed.history(), "study")
    assert summary.outcomes["slower"] == len(slower)
    assert summary.saved_s == pytest.approx(sum(trial.saved_s for trial in slower)) and summary.saved_s > 0


@pytest.mark.parametrize("cut", [3, 8, 14, 20])
def test_a_study_killed_at_any_step_ends_like_an_undisturbed_one(cut: int, undisturbed: ModelledStudy) -> None:
    """The rule of a launch hangs on the closed trials alone."""
    killed = study()
    killed.run(steps=cut)
    resumed = killed.resumed()
    resumed.run()
    assert closed(resumed) == closed(undisturbed)


def test_what_was_stopped_is_no_dead_end_and_is_not_launched_again(undisturbed: ModelledStudy) -> None:
    """It works: the map takes it as a pass, and its identity is closed."""
    history = undisturbed.history()
    for trial in undisturbed.trials:
        if trial.is_slower:
            assert history.atlas.match(trial.work.resolved) is None
            assert trial.work.key in history.working_at(trial.work.rung)
            assert trial.work.identity in history.identities
    keys = [trial.work.identity for trial in undisturbed.trials if trial.counts]
    assert len(keys) == len(set(keys))


def test_what_was_stopped_refutes_the_dead_end_that_it_lies_in() -> None:
    """It works, however slowly: the map must not go on saying that it cannot."""
    space = small_space()
    atlas = chart(*split(numbered(two_failures(space, Reason.ASSERTION))), space, FACTS)
    (found,) = atlas.confirmed
    point = {**found.observed, "graph": 2}
    (trial,) = numbered([(point, Rung.FULL, Outcome(kind=OutcomeKind.SLOWER, value=1.0))])
    assert trial.outcome is not None
    assert with_refutations(trial.outcome, trial, atlas, space).refutes == (found,)


def test_what_was_stopped_is_left_out_of_a_recorded_table(undisturbed: ModelledStudy) -> None:
    """A replay would take a part of a load for the whole of it."""
    described = manifest().model_copy(update={"space": undisturbed.space, "facts": undisturbed.facts})
    whole = sum(trial.counts and not trial.is_slower for trial in undisturbed.trials)
    assert len(list(recorded_lines(described, undisturbed.trials))) == whole + 1  # and the line of the table itself


def test_what_was_stopped_is_evidence_of_a_low_objective_and_never_the_best(undisturbed: ModelledStudy) -> None:
    """The surrogate expects about its partial value there; it is ranked nowhere and repeated never."""
    history = undisturbed.history()
    slower = sums.latest_stopped_early(history, len(history.trials))
    assert slower
    improvement = Improvement(history)
    for point, value in slower:
        key = assignment_key(point)
        assert key not in history.values and key not in history.ranking
        assert key not in improvement.expected_ranking()
        (expected,) = improvement._surrogate.expect([point], improvement._known([point])).mean
        assert expected == pytest.approx(math.log(value), abs=0.25)
    best = summarise(history, "study").best
    assert best is not None and all(
        trial.outcome and trial.outcome.kind is OutcomeKind.MEASURED for trial in best.trials
    )


def test_stopping_early_changes_no_figure_of_what_is_measured_whole(undisturbed: ModelledStudy) -> None:
    """The same work measures the same in a study that stops nothing."""
    whole = ModelledStudy(node=node(), budget=BUDGET, known_spread=KNOWN, stops_early=False)
    whole.run()
    assert not any(trial.is_slower for trial in whole.trials)
    values = {trial.work.identity: trial.outcome for trial in whole.trials}
    for trial in undisturbed.trials:
        if trial.is_measured and trial.work.identity in values:
            assert trial.outcome == values[trial.work.identity]
