"""A base that works is found although the default and every safer setting die."""

from __future__ import annotations

from agent.outcome import Outcome
from agent.propose import base
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
