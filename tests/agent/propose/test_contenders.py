"""Repeats of the best few, also where a study has more launches than the process is shown."""

from __future__ import annotations

import pytest

from agent.propose import improve
from agent.propose.standing import LEARNED_WEIGHT, Standing
from agent.store.trial import Kind
from agent.verdict import comparisons
from search_spaces import load_node
from tests.benchmarks.honest_winner import node_of
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


def test_the_verdict_knows_of_the_noise_what_launches_say_that_were_not_repeated() -> None:
    """Five to eight repeats say little of it: where those of the baseline agree by chance, anything is a gain."""
    study = ModelledStudy(node=node_of("h200-x2-sglang", 0.2), budget=40, seed=1)
    study.run()
    history = study.history()
    standing = Standing(history)
    baseline = history.values[str(history.baseline_key)]
    alone = comparisons(baseline, {key: standing.repeats(key) for key in standing.repeated})
    for key, found in standing.comparisons().items():
        assert found.spread.freedom == alone[key].spread.freedom + LEARNED_WEIGHT
        assert abs(found.spread.sd - 0.2) < abs(alone[key].spread.sd - 0.2)
        assert found.ratio == alone[key].ratio
