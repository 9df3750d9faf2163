"""Repeats of the best few, also where a study has more launches than the process is shown."""

from __future__ import annotations

import pytest

from agent.propose import improve
from agent.propose.standing import Standing
from agent.store.trial import Kind
from search_spaces import load_node
from tests.support.modelled_study import ModelledStudy


def test_a_study_longer_than_what_the_process_is_shown_still_repeats_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is expected of what the process is not shown: that is no contender, and no error."""
    monkeypatch.setattr(improve, "BEST_ROWS", 3)
    monkeypatch.setattr(improve, "LATEST_ROWS", 3)
    study = ModelledStudy(node=load_node("nvlink8-hopper-moe"), budget=40)
    study.run(steps=200)
    history = study.history()
    standing = Standing(history)
    assert len(standing.expected) < len(standing.reliable)
    repeats = [trial for trial in history.launches if trial.work.kind is Kind.REPEAT]
    assert repeats and standing.winner is not None and standing.repeats(standing.winner)
