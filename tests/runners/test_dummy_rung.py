"""The dummy rung of a server: few layers of made-up weights, one completion in the place of the load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from agent.classify import classify
from agent.outcome import OutcomeKind
from runners import EngineSettings, Phase, Rung
from runners.engine_dialects.few_layers import dummy_settings, few_layers
from tests.runners.test_server_runner import request_of, run
from tests.support.installed_engine import make_model
from tests.support.stub_engine import StubEngine


class StubOfVllm(StubEngine):
    """The stub server under the name of an engine that has dummy launches."""

    name: ClassVar[str] = "vllm"  # type: ignore[misc]


def test_one_completion_is_all_that_is_asked_of_it(tmp_path: Path) -> None:
    record = run(StubOfVllm(), request_of(tmp_path, rung=Rung.DUMMY))
    assert (record.passed, record.measurement, record.phase) == (True, None, Phase.READY)
    assert classify(record).kind is OutcomeKind.MEASURED
    assert not (tmp_path / "artifacts" / "load-client.log").exists()


def test_a_server_that_dies_before_its_completion_fails_as_in_a_launch(tmp_path: Path) -> None:
    record = run(StubOfVllm(die_after=0), request_of(tmp_path, rung=Rung.DUMMY))
    assert not record.passed
    assert classify(record).kind is OutcomeKind.FAILED


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({"num_hidden_layers": 48}, {"num_hidden_layers": 2}, id="plain"),
        pytest.param({"num_hidden_layers": 1}, {"num_hidden_layers": 1}, id="fewer there"),
        pytest.param(
            {"num_hidden_layers": 61, "first_k_dense_replace": 3}, {"num_hidden_layers": 5}, id="dense layers first"
        ),
        pytest.param(
            {"num_hidden_layers": 4, "layer_types": ["a", "b", "c", "d"], "eos": [1, 2]},
            {"num_hidden_layers": 2, "layer_types": ["a", "b"]},
            id="a list with an entry a layer",
        ),
        pytest.param(
            {"text_config": {"num_hidden_layers": 30}, "vision_config": {"num_hidden_layers": 9}},
            {"text_config": {"num_hidden_layers": 2}},
            id="the text part of several",
        ),
    ],
)
def test_layers_are_cut_so_that_the_configuration_still_fits(
    config: dict[str, object], expected: dict[str, object], tmp_path: Path
) -> None:
    assert few_layers(make_model(tmp_path / "model", **config), None) == expected


def test_an_eagle3_draft_still_finds_three_layers(tmp_path: Path) -> None:
    draft = make_model(tmp_path / "draft", architectures=["LlamaForCausalLMEagle3"], num_hidden_layers=1)
    assert few_layers(make_model(tmp_path / "model", num_hidden_layers=48), draft) == {"num_hidden_layers": 8}


def test_what_the_user_fixed_stays_beside_it() -> None:
    fixed = {"hf-overrides": '{"rope_theta": 1}', "load-format": "auto", "max-model-len": 512}
    settings = EngineSettings(engine="vllm", num_ranks=1, device="cpu", options=fixed, model="organisation/model")
    options = dummy_settings("vllm", settings).options
    assert json.loads(str(options["hf-overrides"])) == {"rope_theta": 1, "num_hidden_layers": 2}
    assert (options["load-format"], options["max-model-len"]) == ("dummy", 512)
