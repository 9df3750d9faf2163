"""The fixed points of the nodes that ship: what an engineer of such a node told, or what was measured on it."""

from __future__ import annotations

import pytest

from search_spaces import Assignment, NodeModel, Scalar, best, cause, load_node, true_value
from search_spaces.node_loader import shipped_nodes

STORY, UPGRADED, OF_2026 = "pcie8-blackwell-cuda128", "pcie8-blackwell-cuda131", "pcie8-blackwell-engine2026"
NONE = {"speculative_algorithm": "none"}


def point(node: NodeModel, **changes: Scalar) -> Assignment:
    """Return the engine's default with changes, in normal form."""
    return node.space.normalise({**node.default, **changes}, node.facts)


def rate(name: str, level: int, **changes: Scalar) -> float:
    """Return the tokens per second at a level, without noise."""
    node = load_node(name)
    effective, _ = node.answers.resolved(point(node, **changes))
    return node.answers.figures(effective, level).tok_per_s


def why(name: str, **changes: Scalar) -> str | None:
    """Return the reason for which a launch fails for certain."""
    node = load_node(name)
    found = cause(node, point(node, **changes))
    return None if found is None else found.reason


def test_the_ring_gives_82_and_the_custom_all_reduce_38_tokens_per_second() -> None:
    assert rate(STORY, 1, **NONE) == pytest.approx(82, abs=0.5)
    assert rate(STORY, 1, **NONE, allreduce="custom") == pytest.approx(38, abs=0.5)


def test_a_verify_pass_calls_122_all_reduces_of_200_to_250_us() -> None:
    node = load_node(STORY)
    figures = node.answers.figures(node.default, 1)
    assert figures.calls_per_pass == 122
    assert 200 <= figures.us_per_call <= 250


def test_speculation_does_not_pay_off_on_the_default() -> None:
    node = load_node(STORY)
    assert node.default["speculative_algorithm"] == "EAGLE3"
    for level in (1, 8):
        assert rate(STORY, level) < rate(STORY, level, **NONE)


def test_speculation_pays_off_with_the_right_collectives() -> None:
    node = load_node(STORY)
    found = best(node)
    baseline = true_value(node, point(node, **NONE))
    assert found is not None and baseline is not None
    assert found.assignment["speculative_algorithm"] == "EAGLE3"
    assert found.assignment["nccl_algo"] == "allreduce:tree"
    assert found.value > 1.4 * baseline


DEAD = [
    ({"allreduce": "flashinfer_fusion_trtllm"}, "jit_compile_error", None, "unsupported_arch"),
    ({"allreduce": "torch_symm_mem"}, "unsupported_arch", "unsupported_arch", None),
    ({"nccl_algo": "Tree"}, "collective_error", "collective_error", "collective_error"),
    ({"nccl_algo": "allreduce:tree"}, None, None, None),
    ({"moe_a2a_backend": "flashinfer"}, "assertion", "assertion", "assertion"),
    ({"ep_size": 8}, "gpu_oom", "gpu_oom", "gpu_oom"),
    ({"ep_size": 8, "mem_fraction_static": 0.8}, None, None, None),
    ({"mem_fraction_static": 0.6}, "gpu_oom", "gpu_oom", "gpu_oom"),
    ({"mem_fraction_static": 0.95}, "gpu_oom", "gpu_oom", "gpu_oom"),
]


@pytest.mark.parametrize(("changes", "before", "after", "in_2026"), DEAD, ids=[str(changes) for changes, *_ in DEAD])
def test_what_is_dead_depends_on_the_software(
    changes: dict[str, Scalar], before: str | None, after: str | None, in_2026: str | None
) -> None:
    """CUDA 13.1 cures the fusion; KeyError 12 stays until the engine changes, and then is a silent no-op."""
    assert [why(name, **changes) for name in (STORY, UPGRADED, OF_2026)] == [before, after, in_2026]


def test_after_the_upgrade_the_best_is_another_one() -> None:
    bests = {name: best(load_node(name)) for name in (STORY, UPGRADED, OF_2026)}
    backends = {name: found.assignment["allreduce"] for name, found in bests.items() if found is not None}
    assert backends == {STORY: "nccl", UPGRADED: "flashinfer_fusion_trtllm", OF_2026: "pcie_ipc"}


def test_symmetric_memory_is_a_silent_no_op_in_2026() -> None:
    node = load_node(OF_2026)
    effective, taken = node.answers.resolved(point(node, allreduce="torch_symm_mem"))
    assert effective["allreduce"] == "nccl"
    assert [each.why for each in taken] == ["Device capability 12 not supported, communicator is not available"]


def test_the_pcie_ipc_all_reduce_cuts_the_time_of_a_token_as_its_authors_measured() -> None:
    """TPOT 21.1 to 13.6 ms on one such host."""
    ratio = rate(OF_2026, 1, **NONE) / rate(OF_2026, 1, **NONE, allreduce="pcie_ipc")
    assert ratio == pytest.approx(13.6 / 21.1, abs=0.01)
    assert rate(STORY, 1, allreduce="pcie_ipc") == rate(STORY, 1), "older engines do not know it"


MEASURED = [
    ({"allreduce": "custom", **NONE}, 540, 3915),
    ({"allreduce": "nccl", **NONE}, 441, 3252),
    ({"allreduce": "nccl", "nccl_algo": "allreduce:tree", **NONE}, 527, 3351),
    ({"allreduce": "custom", "ep_size": 2, **NONE}, 422, 3627),
    ({"allreduce": "custom", "cuda_graph_max_bs": 0, **NONE}, 23, 230),
    ({"allreduce": "custom"}, 464, 3551),
    ({"allreduce": "nccl"}, 600, 3844),
]


@pytest.mark.parametrize(("changes", "at_1", "at_8"), MEASURED, ids=[str(changes) for changes, *_ in MEASURED])
def test_the_h200_node_answers_as_was_measured(changes: dict[str, Scalar], at_1: float, at_8: float) -> None:
    """Single launches, which differ by 15 % from one to the next."""
    assert rate("h200-x2-sglang", 1, **changes) == pytest.approx(at_1, rel=0.15)
    assert rate("h200-x2-sglang", 8, **changes) == pytest.approx(at_8, rel=0.15)


@pytest.mark.parametrize("name", list(shipped_nodes()))
def test_the_space_says_which_parameter_is_the_draft_length(name: str) -> None:
    """Else a study neither works out other lengths nor ends with a schedule, though the node drafts."""
    node = load_node(name)
    assert isinstance(node, NodeModel)
    draft = node.file.performance.draft
    assert draft is None or draft.parameter in node.space.draft_length_names
