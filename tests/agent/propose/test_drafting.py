"""What another draft length does is worked out from what launches report."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from agent.propose.drafting import Drafting, _beside, _Pass
from agent.propose.surrogate import Beforehand
from agent.propose.tokens import Token
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Scalar, load_node, true_value
from tests.support.modelled_study import ModelledStudy

NEAR = 2
"""Draft lengths this far from the one that was launched are worked out well."""
CLOSE = 0.06
"""Difference of logarithms that noise from launch to launch (a few per cent) and another share of the step leave."""


def launched(name: str, *, with_baseline: bool = True) -> tuple[ModelledStudy, Assignment]:
    """Return a study of a modelled node after its default and its baseline, and the default."""
    study = ModelledStudy(node=load_node(name), budget=40)
    default = study.history().default
    points = [default, study.history().without_speculation(default)][: 1 + with_baseline]
    for kind, point in zip((Kind.DEFAULT, Kind.BASELINE), points, strict=False):
        study.launch(Work(kind=kind, rung=Rung.FULL, requested=point, resolved=point))
    return study, default


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("pcie2-24gib-vllm", "num_speculative_tokens"),
        ("nvlink8-hopper-moe", "speculative_num_steps"),
        ("generated-medium-2", "draft_length"),
    ],
)
def test_the_effect_of_a_nearby_draft_length_is_known_without_a_launch(name: str, parameter: str) -> None:
    """Acceptance by position and the baseline's step say it within the noise."""
    study, default = launched(name)
    drafting = Drafting(study.history())
    assert drafting.is_known
    here = drafting.effects([default])[0]
    assert here.value == 0.0 and here.doubts == (0.0, 0.0)
    for length in study.space.parameters[parameter].domain:
        point = study.space.normalise({**default, parameter: length}, study.facts)
        true = true_value(study.node, point)
        if true is None or abs(float(length) - float(default[parameter])) > NEAR:
            continue
        said = drafting.effects([point])[0].value
        assert said == pytest.approx(math.log(true / (true_value(study.node, default) or 0.0)), abs=CLOSE)


def test_a_longer_draft_than_any_launched_is_doubted_more_the_longer_it_is() -> None:
    """The doubts grow with the distance, and are shared by all lengths."""
    study, default = launched("pcie2-24gib-vllm")
    drafting = Drafting(study.history())
    points = [{**default, "num_speculative_tokens": length} for length in (3, 4, 5, 6, 8)]
    doubts = [each.doubts[0] for each in drafting.effects(points)]
    assert doubts == sorted(doubts) and doubts[0] == 0.0


def test_without_a_launch_that_reports_acceptance_nothing_is_said() -> None:
    """A study whose launches all run without speculation knows nothing of drafts."""
    study = ModelledStudy(node=load_node("pcie2-24gib-vllm"), budget=40)
    plain = study.history().without_speculation(study.history().default)
    study.launch(Work(kind=Kind.DEFAULT, rung=Rung.FULL, requested=plain, resolved=plain))
    drafting = Drafting(study.history())
    assert not drafting.is_known
    assert drafting.effects([plain])[0].value == 0.0 and drafting.effects([plain])[0].doubts == ()


def test_without_a_baseline_a_usual_share_stands_in() -> None:
    """The launch with speculation alone says what is accepted; only the step is guessed."""
    study, default = launched("pcie2-24gib-vllm", with_baseline=False)
    drafting = Drafting(study.history())
    assert drafting.is_known
    effects = drafting.effects([{**default, "num_speculative_tokens": length} for length in (1, 8)])
    assert all(each.value < 0.0 for each in effects)


def test_a_server_that_reports_no_step_time_leaves_the_usual_share() -> None:
    """A level of 0 ms says nothing of a step, and divides nothing."""
    study, default = launched("pcie2-24gib-vllm")
    silent = replace(study.history(), trials=tuple(map(_without_steps, study.history().trials)))
    points = [{**default, "num_speculative_tokens": length} for length in (1, 8)]
    usual, _ = launched("pcie2-24gib-vllm", with_baseline=False)
    said = [each.value for each in Drafting(silent).effects(points)]
    assert said == pytest.approx([each.value for each in Drafting(usual.history()).effects(points)])


def _without_steps(trial: Trial) -> Trial:
    assert trial.record is not None and trial.record.measurement is not None
    levels = tuple(each.model_copy(update={"step_ms_p50": 0.0}) for each in trial.record.measurement.levels)
    measurement = trial.record.measurement.model_copy(update={"levels": levels})
    return trial.model_copy(update={"record": trial.record.model_copy(update={"measurement": measurement})})


def test_beside_values_that_make_a_step_shorter_a_token_takes_a_larger_share_of_it() -> None:
    """Some of its time stays: less than all of it, and more than nothing."""
    token, half = Token(0.1, 0.01, 10.0), 5.0
    seen = _Pass(2, (0.7, 0.6), {1: half * (1 + 2 * token.share)}, 1)
    assert token.share < _beside(token, seen, 1).share < 2 * token.share
    slower = _Pass(2, (0.7, 0.6), {1: 20.0}, 1)
    assert _beside(token, slower, 1).share == token.share


@pytest.mark.parametrize("name", ["pcie2-24gib-vllm", "nvlink8-hopper-moe"])
def test_one_token_more_is_foretold_without_bias(name: str) -> None:
    """A lucky launch with speculation would make drafting look cheap, and every study would draft too much."""
    errors = []
    for seed in range(12):
        study = ModelledStudy(node=load_node(name), budget=40, seed=seed)
        default = study.history().default
        for kind, point in ((Kind.DEFAULT, default), (Kind.BASELINE, study.history().without_speculation(default))):
            study.launch(Work(kind=kind, rung=Rung.FULL, requested=point, resolved=point))
        drafting = Drafting(study.history())
        parameter = study.space.draft_length_names[0]
        longer = study.space.normalise({**default, parameter: int(default[parameter]) + 1}, study.facts)
        values = [true_value(study.node, point) for point in (default, longer)]
        if drafting.is_known and values[0] and values[1]:
            errors.append(drafting.effects([longer])[0].value - math.log(values[1] / values[0]))
    assert len(errors) == 12
    assert abs(sum(errors) / len(errors)) < 0.03


def test_beside_fast_collectives_the_dear_tokens_of_slow_ones_are_hardly_believed() -> None:
    """Longer drafts lose less there, and how much less is a doubt of its own."""
    study, slow = launched("pcie8-blackwell-cuda131")
    fast = {**slow, "allreduce": "flashinfer_fusion_trtllm"}
    for point in (slow, fast):
        study.launch(Work(kind=Kind.PROBE, rung=Rung.PROBE, requested=point, resolved=point))
    drafting = Drafting(study.history())

    def said(point: Assignment, **changes: Scalar) -> Beforehand:
        return drafting.effects([study.space.normalise({**point, **changes}, study.facts)])[0]

    lost = [said(point, speculative_num_steps=7).value - said(point).value for point in (slow, fast)]
    assert lost[0] < lost[1] - 0.05
    near, far = (said(point, speculative_num_steps=7).doubts for point in (slow, fast))
    assert abs(near[1]) < 0.01 < abs(far[1])
