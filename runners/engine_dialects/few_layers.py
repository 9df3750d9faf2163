"""The dummy rung's model: the same one with made-up weights and few layers, so that a launch takes a minute.

Source: vLLM 0.29 to 0.33 `--load-format dummy`, `--hf-overrides` (config/model.py takes nested objects too); SGLang
0.5.6 to 0.5.23 `--load-format dummy`, `--json-model-override-args`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from runners.contract import EngineSettings
from runners.engine_dialects.model_facts import configuration, draft_method
from search_spaces import Scalar

OVERRIDES = {"vllm": "hf-overrides", "sglang": "json-model-override-args"}
"""Engine → its option that replaces keys of the model's configuration."""
LAYERS = "num_hidden_layers"
FEWEST = 2
BESIDE_EAGLE3 = 8
"""An EAGLE-3 draft reads the layers 2, n/2 and n-3 of its target (vLLM, SGLang): of eight these are three."""
DENSE_FIRST = "first_k_dense_replace"
"""DeepSeek and its kin: how many dense layers come before those with experts."""


def dummy_settings(engine: str, settings: EngineSettings) -> EngineSettings:
    """Return the settings of a launch with made-up weights and few layers.

    What the user fixed for the same option stays, but for what is said here.
    """
    option = OVERRIDES[engine]
    overrides = {**_fixed(settings.options.get(option)), **few_layers(settings.model, settings.draft_model)}
    more: dict[str, Scalar] = {"load-format": "dummy", option: json.dumps(overrides, sort_keys=True)}
    return settings.model_copy(update={"options": {**settings.options, **more}})


def few_layers(model: str | None, draft_model: str | None) -> dict[str, object]:
    """Return the keys of a model's configuration that leave few layers; lists of one entry a layer are cut.

    Of a model named by its hub nothing is known but that it has layers.
    """
    config = configuration(model) or {}
    inner = config.get("text_config")
    text = inner if isinstance(inner, Mapping) and LAYERS in inner else None
    found = _shortened(text if text is not None else config, _fewest(draft_model))
    return found if text is None else {"text_config": found}


def _fewest(draft_model: str | None) -> int:
    draft = configuration(draft_model)
    return BESIDE_EAGLE3 if draft is not None and draft_method(draft) == "eagle3" else FEWEST


def _shortened(config: Mapping[str, object], wanted: int) -> dict[str, object]:
    dense = config.get(DENSE_FIRST)
    if isinstance(dense, int):
        wanted = max(wanted, dense + FEWEST)
    there = config.get(LAYERS)
    layers = min(wanted, there) if isinstance(there, int) else wanted
    lists = {name: value[:layers] for name, value in config.items() if isinstance(value, list) and len(value) == there}
    return {LAYERS: layers, **lists}


def _fixed(text: Scalar | None) -> dict[str, object]:
    try:
        content = json.loads(str(text)) if text is not None else {}
    except ValueError:  # the engine itself will refuse it
        return {}
    return content if isinstance(content, dict) else {}
