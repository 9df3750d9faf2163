"""The result file: its keys are a contract, and its figures agree with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

TOP = [
    "schema",
    "engine",
    "model",
    "resolved",
    "effects",
    "levels",
    "collectives",
    "outputs",
    "min_logit_margin",
    "margin_bound",
    "margin_violated",
    "floor",
    "stopped",
]
LEVEL = [
    "concurrency",
    "output_tok_per_s",
    "ttft_ms",
    "tpot_ms",
    "step_ms",
    "steps",
    "verify_steps_per_s",
    "acceptance_length",
    "acceptance_per_position",
    "requests",
]


@pytest.fixture
def result(engine: Callable[..., Any]) -> dict[str, Any]:
    launch = engine("--device", "cpu", "--draft-length", "2", "--expert-parallel", "on", "--concurrency", "2,3")
    assert launch.exit_code == 0, launch.stderr
    found: dict[str, Any] = launch.result
    return found


def test_result_has_the_documented_keys_and_consistent_figures(result: dict[str, Any]) -> None:
    """One launch, every key, and the sums that must hold between them."""
    assert list(result) == TOP
    assert result["schema"] == 1
    assert result["engine"]["device"] == "cpu" and result["engine"]["tp"] == 2 and result["engine"]["nccl"] is None
    assert result["resolved"] == {
        "allreduce": "gloo",
        "expert_parallel": True,
        "cuda_graph_max_bs": 0,
        "draft_length": 2,
    }
    assert [effect["parameter"] for effect in result["effects"]] == list(result["resolved"])
    assert result["floor"] is None
    assert [list(level) for level in result["levels"]] == [LEVEL, LEVEL]
    assert [level["concurrency"] for level in result["levels"]] == [2, 3]
    for level in result["levels"]:
        assert level["acceptance_length"] == pytest.approx(1 + sum(level["acceptance_per_position"]))
        assert all(request["output_tokens"] == 12 for request in level["requests"])
        assert all(0 < request["ttft_s"] < request["e2e_s"] for request in level["requests"])
        assert len(level["requests"]) == max(4, 2 * level["concurrency"])
    exchanges = result["collectives"]
    # 3 layers of verify and 2 draft passes of 1 layer: each 1 all-reduce, 2 all-to-alls, 1 all-gather; the logits.
    assert exchanges["calls_by_op"] == {"all_reduce": 5, "all_to_all": 10, "all_gather": 8}
    assert exchanges["calls_per_step"] == sum(call["count"] for call in exchanges["calls"]) == 23
    assert len(result["outputs"]) == 4
    assert result["min_logit_margin"] > result["margin_bound"]
    assert not result["margin_violated"]


def test_same_flags_give_the_same_outputs_and_another_seed_others(engine: Callable[..., Any]) -> None:
    """The flags are the reproducible command."""
    first, again, other = (engine("--device", "cpu", "--seed", seed).result["outputs"] for seed in ("1", "1", "2"))
    assert first == again
    assert first != other
