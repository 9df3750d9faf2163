"""The same tokens, bit for bit of every decision, whatever the draft, the backend, the exchange or the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from runners.torch_engine.associations import LOOK_BACK, Associations
from runners.torch_engine.cli import parse_config
from runners.torch_engine.serving import make_requests

ResultsOf = Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]]

CPU = ("--device", "cpu", "--tp", "2", "--requests", "4", "--output-tokens", "24")
BACKENDS = ("gloo", "reduce_scatter_all_gather", "all_gather_local_sum")


def expected_outputs() -> list[list[int]]:
    """What the associations alone predict, without a model."""
    config = parse_config(["--preset", "tiny", *CPU])
    known = Associations.draw(config)
    outputs = []
    for request in make_requests(config, 4):
        tokens = list(request.prompt)
        for _ in range(config.workload.output_tokens):
            tokens.append(known.successor(tokens[-1], tokens[-1 - LOOK_BACK]))
        outputs.append(tokens[len(request.prompt) :])
    return outputs


@pytest.fixture(scope="module")
def expected() -> list[list[int]]:
    return expected_outputs()


@pytest.mark.slow
def test_every_draft_length_emits_the_tokens_of_no_draft_at_both_batch_sizes(
    results_of: ResultsOf, expected: list[list[int]]
) -> None:
    """Greedy acceptance is lossless, and the rows of a pass do not touch each other's bits."""
    lengths = [str(length) for length in range(9)]
    alone = results_of([[*CPU, "--concurrency", "1", "--draft-length", length] for length in lengths])
    together = results_of([[*CPU, "--concurrency", "4", "--draft-length", length] for length in lengths])
    assert [result["outputs"] for result in alone + together] == [expected] * 18
    # Not only the decisions: with the same sums in the same order, the very logits.
    assert len({result["min_logit_margin"] for result in alone + together}) == 1


def test_every_backend_and_both_expert_exchanges_emit_the_same_tokens(
    results_of: ResultsOf, expected: list[list[int]]
) -> None:
    """The knobs change how ranks talk, never what the model says."""
    launches = [
        [
            *CPU,
            "--concurrency",
            concurrency,
            "--allreduce",
            backend,
            "--expert-parallel",
            exchange,
            "--draft-length",
            length,
        ]
        for backend in BACKENDS
        for exchange in ("on", "off")
        for concurrency, length in (("1", "3"), ("4", "2"))
    ]
    results = results_of(launches)
    assert [result["outputs"] for result in results] == [expected] * len(launches)
    assert not any(result["margin_violated"] for result in results)


def test_outputs_follow_the_prompt_and_do_not_repeat_one_token(expected: list[list[int]]) -> None:
    """A degenerate output would make every comparison above worthless."""
    assert len({tuple(output) for output in expected}) == len(expected)
    assert all(len(set(output)) > len(output) // 2 for output in expected)


def test_agreement_dial_moves_acceptance_from_nothing_to_everything(results_of: ResultsOf) -> None:
    """The dial is documented as the share of token classes on which the draft is right."""
    never, always = results_of(
        [[*CPU, "--concurrency", "1", "--draft-length", "3", "--draft-agreement", dial] for dial in ("0", "1")]
    )
    assert never["levels"][0]["acceptance_length"] == 1
    assert always["levels"][0]["acceptance_length"] == 4
    assert always["levels"][0]["acceptance_per_position"] == [1, 1, 1]


def test_other_numbers_of_ranks_emit_the_same_tokens(results_of: ResultsOf, expected: list[list[int]]) -> None:
    """The model does not depend on how it is split."""
    common = [*CPU, "--concurrency", "1", "--draft-length", "2"]
    results = results_of(
        [[*common, "--tp", "1"], [*common, "--tp", "4"], [*common, "--tp", "4", "--expert-parallel", "on"]]
    )
    assert [result["outputs"] for result in results] == [expected] * 3
