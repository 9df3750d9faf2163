"""A base that works is found although the default and every safer setting die."""

from __future__ import annotations

import pytest

from agent.outcome import Outcome, OutcomeKind
from agent.propose import base
from agent.propose.order import Stop
from agent.reasons import Reason
from agent.store.trial import Kind, Trial
from search_spaces.condition import Condition
from tests.support.planted import Planted, Truth, small_space
from tests.support.simulated_study import SimulatedStudy

SPACE = small_space()


def test_what_the_open_causes_speak_for_is_tried_where_every_safer_setting_dies() -> None:
    """Here everything without `expert` dies, and no safer setting changes it."""
    dies = Planted((Condition(parameter="expert", value=False),), Reason.ASSERTION, has_blames=False)
    study = SimulatedStudy(Truth(SPACE, (dies,)), 30)
    stop = study.run()
    assert stop is not None and not stop.nothing_works
    found = study.history().base
    assert found is not None and found["expert"] is True
    tried = [trial for trial in study.trials if trial.work.kind is Kind.DEFAULT]
    assert len(tried) <= 1 + len(SPACE.fallbacks) + base.BY_CAUSE


def test_the_safest_setting_is_launched_again_where_it_may_have_died_by_chance() -> None:
    """A launch that dies once by something that may not repeat proves nothing."""

    def judge(trial: Trial, _: int) -> Outcome | None:
        of_default = trial.work.kind is Kind.DEFAULT
        return Outcome(kind="failed", failure=Planted((), Reason.SERVER_HANG).failure) if of_default else None  # type: ignore[arg-type]

    study = SimulatedStudy(Truth(SPACE), 30, judge=judge)
    stop = study.run()
    assert stop is not None and not stop.nothing_works
    safest = [trial.work for trial in study.trials if trial.work.kind is Kind.DEFAULT][len(SPACE.fallbacks)]
    again = next(trial.work for trial in study.trials if trial.work.kind is Kind.CONFIRM)
    assert again.resolved == safest.resolved


def gave_up(reason: Reason) -> SimulatedStudy:
    """Return a study that gave up, since whatever it launched died of this, and that another agent resumes."""
    failure = Planted((), reason).failure
    study = SimulatedStudy(Truth(SPACE), 60, judge=lambda *_: Outcome(kind=OutcomeKind.FAILED, failure=failure))
    stop = study.run()
    assert isinstance(stop, Stop) and stop.nothing_works
    return study.resumed()


def test_what_may_have_died_of_something_outside_is_launched_again_when_the_study_is_resumed() -> None:
    """Memory was short, or somebody killed it: the default first, and the study goes on where that works now."""
    study = gave_up(Reason.PROCESS_KILLED)
    spent = len(study.trials)
    study.judge = None
    stop = study.run()
    assert stop is not None and stop.why == "the budget is spent"
    assert study.trials[spent].work.resolved == study.history().default
    assert study.history().base == study.history().default


def test_a_resumed_study_in_which_all_still_dies_gives_up_again_and_ends() -> None:
    """One launch for each starting point, each time that somebody resumes it; and none by the same agent."""
    study = gave_up(Reason.PROCESS_KILLED)
    spent, points = len(study.trials), {trial.work.key for trial in study.trials}
    stop = study.run()
    assert stop is not None and stop.nothing_works and "agent resume" in stop.why
    assert len(study.trials) - spent == len(points)
    assert len({trial.work.identity for trial in study.trials}) == len(study.trials)


def test_a_study_that_is_interrupted_on_its_way_gives_up_as_an_undisturbed_one_does() -> None:
    """Nobody resumed it because the cause is gone."""
    undisturbed = gave_up(Reason.PROCESS_KILLED)
    study = SimulatedStudy(undisturbed.truth, 60, judge=undisturbed.judge)
    study.run(steps=3)
    study = study.resumed()
    stop = study.run()
    assert stop is not None and stop.nothing_works
    identities = [trial.work.identity for trial in study.trials if trial.counts]
    assert identities == [trial.work.identity for trial in undisturbed.trials]


@pytest.mark.parametrize("reason", [Reason.CONFIG_INVALID, Reason.GPU_OOM])
def test_what_the_engine_itself_refuses_is_not_launched_again_by_resuming(reason: Reason) -> None:
    study = gave_up(reason)
    spent = len(study.trials)
    stop = study.run()
    assert stop is not None and stop.nothing_works and "agent resume" not in stop.why
    assert len(study.trials) == spent
