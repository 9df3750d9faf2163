"""How vLLM is told: the names of its options from 0.29 to 0.33, and what a launch adds to them.

Source: vllm/engine/arg_utils.py, vllm/config/compilation.py and vllm/config/speculative.py of 0.29.0 to 0.33.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from runners.contract import EngineSettings
from runners.engine_dialects.engine_options import EngineOptions
from runners.engine_dialects.spelling import VALUE, Dialect, Way
from search_spaces import Scalar

MODULE = "vllm.entrypoints.openai.api_server"
"""`vllm serve` is a console script, and that of the CPU wheels dies for want of its own metadata."""
MODEL, TP_SIZE = "model", "tensor-parallel-size"
METHOD, TOKENS, DRAFT = (f"speculative-config.{key}" for key in ("method", "num_speculative_tokens", "model"))
DRAFTLESS = ("ngram", "ngram_gpu", "suffix")
GRAPH_STEP = 8
"""Graphs are captured for 1, 2 and 4 requests, then for every multiple of this."""

DIALECT: Dialect = {
    "cudagraph-capture-sizes": (
        Way({"cudagraph-capture-sizes": VALUE}),
        Way({"cuda-graph-sizes": VALUE}),
    ),
}
ALIASES: Mapping[str, str] = {
    "cuda-graph-sizes": "cudagraph-capture-sizes",
    "spec-method": METHOD,
    "spec-model": DRAFT,
    "spec-tokens": TOKENS,
}
"""Any version's spelling → our name."""
OVERLAPS: Mapping[str, str] = {
    "cudagraph-capture-sizes": "cuda-graph-max-bs",
    "max-cudagraph-capture-size": "cuda-graph-max-bs",
    "compilation-config.cudagraph_capture_sizes": "cuda-graph-max-bs",
    "compilation-config.max_cudagraph_capture_size": "cuda-graph-max-bs",
}
"""An option that the user may fix → the one of ours that must then be left alone."""
SHORT_OPTIONS: Mapping[str, str] = {
    "tp": TP_SIZE,
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "ep": "enable-expert-parallel",
    "cc": "compilation-config",
    "sc": "speculative-config",
    "O": "optimization-level",
    "q": "quantization",
    "asc": "api-server-count",
}
CHOSEN_BY_US = ("host", "port")


def launch_options(
    settings: EngineSettings, said: Mapping[str, Scalar], seed: int, accepted: EngineOptions
) -> dict[str, Scalar]:
    """Return what a launch needs beside the options `said`, which go before it."""
    found: dict[str, Scalar] = {MODEL: str(settings.model), TP_SIZE: settings.num_ranks}
    if accepted.option("seed"):
        found["seed"] = seed
    method = said.get(METHOD)
    if method is not None and method not in DRAFTLESS and settings.draft_model is not None:
        found[DRAFT] = settings.draft_model
    return found


def expand(name: str, value: Scalar) -> Mapping[str, Scalar]:
    """Return what one option says in our names: vLLM itself takes every `…_mtp` method for mtp."""
    return {name: "mtp"} if name == METHOD and str(value).endswith("_mtp") else {name: value}


def complete(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options as this launch needs them.

    Graph sizes become tokens: vLLM replays a decode graph only at multiples of the tokens of a verify pass, and rounds
    or drops other sizes without an error. What describes a draft is left away where nothing is drafted.
    """
    found = dict(options)
    if METHOD not in found:
        found = {name: value for name, value in found.items() if not name.startswith("speculative-config.")}
    batch = found.pop("cuda-graph-max-bs", None)
    if batch is not None:
        drafted = str(found.get(TOKENS, 0))
        tokens = 1 + (int(drafted) if drafted.isdigit() else 0)  # what is no number, vLLM itself refuses
        found["cudagraph-capture-sizes"] = " ".join(str(size) for size in capture_sizes(int(batch), tokens))
    return found


def capture_sizes(max_batch: int, tokens_per_request: int) -> list[int]:
    """Return the graph sizes in tokens for batches of up to `max_batch` requests, in ascending order."""
    batches = {1, 2, 4, max_batch, *range(GRAPH_STEP, max_batch, GRAPH_STEP)}
    return [batch * tokens_per_request for batch in sorted(batches) if batch <= max_batch]


def flattened(name: str, value: Scalar) -> dict[str, Scalar]:
    """Return a JSON object that the user fixed as options with dots, one for each of its keys; others as they are.

    An object whose own keys have dots stays whole.
    """
    try:
        content = json.loads(value) if isinstance(value, str) and value.lstrip().startswith("{") else None
    except ValueError:
        content = None
    if not isinstance(content, dict) or any("." in key for key in content):
        return {name: value}
    found: dict[str, Scalar] = {}
    for key, inner in content.items():
        found |= flattened(f"{name}.{key}", _as_scalar(inner))
    return found


def _as_scalar(value: object) -> Scalar:
    """A value inside a JSON object, such that it is the same when it is read as JSON again: "8" stays a text."""
    if isinstance(value, bool | int | float):
        return value
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value)
