"""A draft length for each batch size, in each engine's own form."""

from __future__ import annotations

import itertools
import json

import pytest

from runners.engine_dialects.schedules import SGLANG_FILE, batch_ranges, engine_schedule

EAGLE = {"speculative-algorithm": "EAGLE3", "speculative-eagle-topk": "1"}


def test_vllm_takes_ranges_of_batch_sizes() -> None:
    """Each batch size takes the concurrency that is nearest as a ratio; the first row begins at 1."""
    form = engine_schedule("vllm", "vllm 0.32.0+cpu", {8: 0, 1: 4, 32: 0}, {})
    rows = json.loads(str(form.options["speculative-config.num_speculative_tokens_per_batch_size"]))
    assert rows == [[1, 2, 4], [3, 16, 0], [17, 32, 0]]
    assert (form.why_none, form.files) == ("", {})


@pytest.mark.parametrize("levels", [(1,), (1, 2), (2, 3), (1, 8, 64, 256), (4, 5, 6, 7)])
def test_ranges_have_no_gap_and_each_holds_its_level(levels: tuple[int, ...]) -> None:
    """Whatever the levels."""
    rows = batch_ranges({level: index for index, level in enumerate(levels)})
    assert rows[0][0] == 1 and rows[-1][1] == levels[-1]
    assert all(row[0] == before[1] + 1 for before, row in itertools.pairwise(rows))
    assert all(first <= level <= end for (first, end, _), level in zip(rows, levels, strict=True))


def test_sglang_takes_a_file_of_rows() -> None:
    """One candidate a row, so that it is a length and not a choice."""
    form = engine_schedule("sglang", "sglang 0.5.16", {1: 3, 8: 0}, EAGLE)
    assert form.options == {"speculative-adaptive": True, "speculative-adaptive-config": SGLANG_FILE}
    assert json.loads(form.files[SGLANG_FILE]) == {"1": {"candidate_steps": [3]}, "8": {"candidate_steps": [0]}}


@pytest.mark.parametrize(
    ("engine", "version", "options", "why"),
    [
        ("torch", "torch 2.9", {}, "torch takes one draft length"),
        ("vllm", "vllm 0.19.1", {}, "vLLM 0.19.1 takes one draft length"),
        ("vllm", "vllm (torch 2.9.0)", {}, "is not known"),
        ("sglang", "sglang 0.5.11", EAGLE, "SGLang 0.5.11 takes one draft length"),
        ("sglang", "0.5.16", {**EAGLE, "speculative-eagle-topk": "4"}, "top-k 1"),
        ("sglang", "0.5.16", {"speculative-algorithm": "NGRAM"}, "EAGLE"),
    ],
)
def test_where_there_is_no_such_form_the_reason_is_told(
    engine: str, version: str, options: dict[str, str], why: str
) -> None:
    """And no option that the engine would refuse."""
    form = engine_schedule(engine, version, {1: 3, 8: 0}, options)
    assert why in form.why_none and not form.options
