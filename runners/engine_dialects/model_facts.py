"""What the configuration files of a model and its draft say about what can be tried with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

EXPERT_COUNTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
PREDICTION_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_num_layers")

DRAFT_NAMES = {
    "eagle3": "eagle3",
    "eagle": "eagle",
    "dflash": "dflash",
    "dspark": "dspark",
    "nextn": "mtp",
    "mtp": "mtp",
}
"""Part of the name of a draft's architecture, in lower case → what it is for; the first one that fits counts."""


def model_facts(model: str | None, draft_model: str | None) -> dict[str, object]:
    """Return the facts `num_experts` (1 for a dense model), `model_drafts` and `draft_method`, as far as known.

    Only folders on this machine are read; of a model named by its hub nothing is known, and nothing is fetched.
    """
    facts: dict[str, object] = {}
    config = configuration(model)
    if config is not None:
        facts["num_experts"] = _first_count(config, EXPERT_COUNTS) or 1
        if (layers := _first_count(config, PREDICTION_LAYERS)) is not None:
            facts["model_drafts"] = layers > 0
    draft = configuration(draft_model)
    if draft is not None and (method := draft_method(draft)) is not None:
        facts["draft_method"] = method
    return facts


def draft_method(config: Mapping[str, object]) -> str | None:
    """Return what a draft with this configuration is for: eagle3, eagle, mtp, dflash, dspark or draft_model.

    None where that cannot be told: some EAGLE heads call themselves plain language models, of a single layer.

    Source: entry classes of SGLang 0.5.23 srt/models (`LlamaForCausalLMEagle3`, `LlamaForCausalLMEagle`,
    `DeepseekV3ForCausalLMNextN`, `DFlashDraftModel`, `DSparkDraftModel`).
    """
    names = config.get("architectures")
    text = " ".join(map(str, names if isinstance(names, list) else [])) + " " + str(config.get("model_type", ""))
    for fragment, method in DRAFT_NAMES.items():
        if fragment in text.lower():
            return method
    layers = _first_count(config, ("num_hidden_layers",))
    return "draft_model" if layers is not None and layers > 1 else None


def configuration(model: str | None) -> Mapping[str, object] | None:
    """Return a model folder's config.json; None where there is none that can be read."""
    if model is None:
        return None
    try:
        content = json.loads((Path(model).expanduser() / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _first_count(config: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    text = config.get("text_config")
    for part in (config, text if isinstance(text, dict) else {}):
        for name in names:
            value = part.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None
