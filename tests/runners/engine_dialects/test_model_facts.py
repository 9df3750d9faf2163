"""What the configuration files of model and draft say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runners.engine_dialects import draft_method, model_facts


def model(folder: Path, **config: object) -> str:
    """Write a model's configuration."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("config", "method"),
    [
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "eagle3"),
        ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, "eagle3"),
        ({"architectures": ["LlamaForCausalLMEagle"]}, "eagle"),
        ({"architectures": ["DeepseekV3ForCausalLMNextN"]}, "mtp"),
        ({"architectures": ["DFlashDraftModel"]}, "dflash"),
        ({"architectures": ["Qwen3DSparkModel"]}, "dspark"),
        ({"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 28}, "draft_model"),
        ({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1}, None),
        ({}, None),
    ],
)
def test_a_draft_is_known_by_its_architecture(config: dict[str, object], method: str | None) -> None:
    """A head that calls itself a plain model of one layer may be anything."""
    assert draft_method(config) == method


def test_experts_and_prediction_layers_are_counted(tmp_path: Path) -> None:
    """Also where the language model stands inside a configuration for several kinds of input."""
    dense = model(tmp_path / "dense", num_hidden_layers=4)
    experts = model(tmp_path / "experts", n_routed_experts=256, num_nextn_predict_layers=1)
    nested = model(tmp_path / "nested", text_config={"num_experts": 64})
    draft = model(tmp_path / "draft", architectures=["LlamaForCausalLMEagle3"])
    assert model_facts(dense, None) == {"num_experts": 1}
    assert model_facts(experts, draft) == {"num_experts": 256, "model_drafts": True, "draft_method": "eagle3"}
    assert model_facts(nested, nested) == {"num_experts": 64}


def test_of_a_model_that_is_not_here_nothing_is_known(tmp_path: Path) -> None:
    """No hub is asked; a file that is no configuration says nothing."""
    (tmp_path / "config.json").write_text("[]")
    assert model_facts("meta-llama/Llama-3.1-8B", None) == {}
    assert model_facts(None, str(tmp_path)) == {}
    (tmp_path / "config.json").write_text("{")
    assert model_facts(str(tmp_path), None) == {}
