"""What a server exchanges in a pass of its model: messages from the model's config.json and the load."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.torch_engine.config import ITEM_BYTES

VOCABULARY = ("vocab_size",)
HIDDEN, LAYERS = ("hidden_size", "n_embd", "d_model"), ("num_hidden_layers", "n_layer", "num_layers")
SUMS_PER_LAYER = 2
"""All-reduces of a tensor-parallel layer: after attention and after the (expert) feed-forward."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a model's shape that its collectives depend on."""

    hidden: int
    """Width of the residual stream, in elements."""
    layers: int
    vocabulary: int = 0
    """Token ids; 0 where the configuration does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """Tokens that one request sends through the model and the draft in one decoding step."""

    verify: int = 1
    """Of the verify pass: the drafted tokens and the last accepted one; 1 without speculation."""
    draft_passes: int = 0
    """Passes of a draft model that is split over the ranks."""
    draft: int = 1
    """Of each of them."""


Exchange = dict[str, str | int]
"""A kind of collective call, as the probe server reads it: op, numel (elements that a rank passes in), count."""


def shape_of(model: str | None, environment: Mapping[str, str], overrides: object = None) -> Shape | None:
    """Return the shape of a model, or None where its config.json is not on this machine or does not say.

    Args:
        model: A folder, or the name of a model that lies in the user's cache of the hub.
        environment: The user's environment, which says where that cache is.
        overrides: JSON text of keys that the engine is told to replace in the configuration, if any.
    """
    config = _configuration(model, environment)
    if config is None:
        return None
    config = {**config, **_object(overrides)}
    inner = config.get("text_config")
    parts = (config, inner) if isinstance(inner, dict) else (config,)
    hidden, layers = _first(parts, HIDDEN), _first(parts, LAYERS)
    return Shape(hidden, layers, _first(parts, VOCABULARY) or 0) if hidden and layers else None


def step_exchanges(
    target: Shape, draft: Shape | None, rows: StepRows, concurrency: int, num_ranks: int
) -> list[Exchange]:
    """Return the calls of one decoding step of `concurrency` requests: the verify pass, and the draft's before it.

    The logits are gathered once, by NCCL whatever sums: settings under which it cannot gather break the pass.
    """
    found = [_sums(target, concurrency * rows.verify, 1)]
    if target.vocabulary:
        part = -(-target.vocabulary // num_ranks)
        found.append({"op": "all_gather", "numel": concurrency * rows.verify * part, "count": 1})
    if draft is not None and rows.draft_passes:
        found.append(_sums(draft, concurrency * rows.draft, rows.draft_passes))
    return found


def sized_exchanges(target: Shape | None, size: int, device: str) -> list[Exchange]:
    """Return the calls of a pass whose messages have `size` bytes; of an unknown model, a single sum and a gather."""
    calls, numel = SUMS_PER_LAYER * target.layers if target else 1, max(1, size // ITEM_BYTES[device])
    gather: Exchange = {"op": "all_gather", "numel": numel, "count": 1}
    return [{"op": "all_reduce", "numel": numel, "count": calls}, gather]


def _sums(shape: Shape, rows: int, passes: int) -> Exchange:
    return {"op": "all_reduce", "numel": rows * shape.hidden, "count": SUMS_PER_LAYER * shape.layers * passes}


def _configuration(model: str | None, environment: Mapping[str, str]) -> dict[str, object] | None:
    if model is None:
        return None
    for folder in (Path(model).expanduser(), *_cached(model, environment)):
        try:
            content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return content if isinstance(content, dict) else None
    return None


def _cached(model: str, environment: Mapping[str, str]) -> list[Path]:
    """Return the folders in which the hub's client keeps a model, newest first. Nothing is fetched."""
    home = environment.get("HOME") or str(Path.home())
    root = environment.get("HF_HOME") or f"{environment.get('XDG_CACHE_HOME') or f'{home}/.cache'}/huggingface"
    cache = Path(environment.get("HF_HUB_CACHE") or f"{root}/hub")
    found = [path for path in cache.glob(f"models--{model.replace('/', '--')}/snapshots/*") if path.is_dir()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _object(text: object) -> dict[str, object]:
    try:
        content = json.loads(text) if isinstance(text, str) else {}
    except ValueError:  # the engine itself refuses it
        return {}
    return content if isinstance(content, dict) else {}


def _first(parts: Sequence[Mapping[str, object]], names: Sequence[str]) -> int | None:
    values = (part.get(name) for part in parts for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
