"""A draft length for each batch size, in the form in which an engine takes it.

* vLLM 0.24 to 0.33, `speculative_config.num_speculative_tokens_per_batch_size` (read in 0.32,
  v1/spec_decode/dynamic/utils.py): rows of first and last batch size and tokens, from 1 on, without overlap; behind the
  last row its tokens go on. `num_speculative_tokens` is the most of any row. Not with data parallelism.
* SGLang 0.5.14 to 0.5.23, `--speculative-adaptive-config` (read in 0.5.14, 0.5.18 and 0.5.23,
  srt/speculative/adaptive_spec_params.py): batch size → candidate steps, of which one alone is a fixed length; other
  batch sizes take the nearest row. Only EAGLE and EAGLE3 with a chain (top-k 1). 0.5.11 has one list for all sizes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from search_spaces import Scalar

SGLANG_FILE = "speculative-schedule.json"
VLLM_FROM, SGLANG_FROM = (0, 24), (0, 5, 14)
_RELEASE = re.compile(r"(?:[A-Za-z]+ +)?v?(\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class EngineSchedule:
    """What a launch is told besides its assignment, or why there is nothing of the kind."""

    options: Mapping[str, Scalar] = field(default_factory=dict)
    """Further options in our names."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name of a file that the options refer to → its text."""
    why_none: str = ""
    """Why the engine cannot be told a length for each batch size; empty where it can."""


def engine_schedule(
    engine: str, version: str, lengths: Mapping[int, int], options: Mapping[str, Scalar]
) -> EngineSchedule:
    """Return how an engine is told to draft so many tokens at each concurrency.

    Args:
        engine: Name of the engine.
        version: Its version, perhaps behind its name.
        lengths: Concurrency → tokens to draft, 0 for none.
        options: Options of the launch that drafts the most of them, in our names.
    """
    if engine == "vllm":
        return _vllm(version, lengths)
    if engine == "sglang":
        return _sglang(version, lengths, options)
    return EngineSchedule(why_none=f"{engine} takes one draft length for all batch sizes")


def batch_ranges(lengths: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Return (first batch size, last batch size, tokens) for each concurrency: to a batch applies what is nearest.

    Nearest as a ratio. The last row ends at the largest concurrency measured.
    """
    levels = sorted(lengths)
    ends = [math.isqrt(low * high) for low, high in pairwise(levels)] + levels[-1:]
    firsts = [1, *(end + 1 for end in ends[:-1])]
    return [(first, end, lengths[level]) for first, end, level in zip(firsts, ends, levels, strict=True)]


def _vllm(version: str, lengths: Mapping[int, int]) -> EngineSchedule:
    if (problem := _too_old("vLLM", version, VLLM_FROM)) is not None:
        return EngineSchedule(why_none=problem)
    rows = json.dumps([list(row) for row in batch_ranges(lengths)])
    return EngineSchedule(options={"speculative-config.num_speculative_tokens_per_batch_size": rows})


def _sglang(version: str, lengths: Mapping[int, int], options: Mapping[str, Scalar]) -> EngineSchedule:
    if (problem := _too_old("SGLang", version, SGLANG_FROM)) is not None:
        return EngineSchedule(why_none=problem)
    algorithm = options.get("speculative-algorithm")
    if algorithm not in ("EAGLE", "EAGLE3") or options.get("speculative-eagle-topk") != "1":
        return EngineSchedule(why_none="SGLang changes the length only with EAGLE or EAGLE3 and top-k 1")
    rows = {str(level): {"candidate_steps": [steps]} for level, steps in sorted(lengths.items())}
    said: dict[str, Scalar] = {"speculative-adaptive": True, "speculative-adaptive-config": SGLANG_FILE}
    return EngineSchedule(options=said, files={SGLANG_FILE: json.dumps(rows, indent=1) + "\n"})


def _too_old(name: str, version: str, first: tuple[int, ...]) -> str | None:
    found = _RELEASE.match(version)
    wanted = ".".join(map(str, first))
    if found is None:
        return f"{name} takes a length for each batch size from {wanted} on; which version this is, is not known"
    release = tuple(int(part) for part in found[1].split("."))
    return None if release >= first else f"{name} {found[1]} takes one draft length for all batch sizes"
