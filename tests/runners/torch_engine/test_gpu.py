"""On GPUs: every backend, eagerly and in CUDA graphs, gives the same tokens with and without a draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

NUM_GPUS = torch.cuda.device_count()

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(NUM_GPUS < 2, reason="needs two NVIDIA GPUs: a collective of one rank exchanges nothing"),
]

GPU = ("--device", "cuda", "--tp", "2", "--output-tokens", "24")
IN_GRAPHS = ("nccl", "symm_mem_one_shot", "symm_mem_two_shot", "reduce_scatter_all_gather", "all_gather_local_sum")

ResultsOf = Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]]


def test_every_backend_and_draft_gives_the_same_tokens_eagerly_and_in_graphs(results_of: ResultsOf) -> None:
    """Rounding differs between all of these; the logit margin keeps the tokens the same, and is proven to."""
    launches = [
        [
            *GPU,
            "--allreduce",
            backend,
            "--cuda-graph-max-bs",
            graphs,
            "--draft-length",
            draft,
            "--expert-parallel",
            experts,
        ]
        for backend in IN_GRAPHS
        for graphs in ("0", "4")
        for draft, experts in (("0", "off"), ("3", "off"), ("2", "on"))
    ]
    results = results_of([*launches, [*GPU, "--allreduce", "gloo", "--draft-length", "3"]])
    assert all(result["outputs"] == results[0]["outputs"] for result in results)
    assert not any(result["margin_violated"] for result in results)
    captured = [result["resolved"]["cuda_graph_max_bs"] for result in results]
    assert captured == [graphs for _ in IN_GRAPHS for graphs in (0, 0, 0, 4, 4, 4)] + [0]


def test_gloo_cannot_be_captured(engine: Callable[..., Any]) -> None:
    """Its copies through host memory are no part of a stream: the capture itself says so."""
    launch = engine(*GPU, "--allreduce", "gloo", "--cuda-graph-max-bs", "2")
    assert launch.exit_code == 1
    assert "phase=capture_graphs" in launch.stdout


def test_floor_of_a_step_is_recorded(engine: Callable[..., Any]) -> None:
    """Bytes at copy speed and the exchanges on their own; the ratio is a figure to read, not a limit."""
    floor = engine(*GPU, "--cuda-graph-max-bs", "4").result["floor"]
    assert floor["bandwidth_bytes_per_s"] > 1e11
    assert floor["floor_ms"] > 0
    assert floor["ratio"] == pytest.approx(floor["measured_step_ms"] / floor["floor_ms"])
