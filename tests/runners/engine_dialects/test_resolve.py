"""What an engine replaces without a word and what it refuses, known before a launch."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from runners import EngineSettings, Resolution
from runners.engine_dialects import sglang_resolve, vllm_resolve
from search_spaces import Scalar, load_space
from tests.support.recorded_options import recorded

PCIE = ["X PHB PHB PHB", "PHB X PHB PHB", "PHB PHB X PHB", "PHB PHB PHB X"]
NVLINK = [row.replace("PHB", "NV18") for row in PCIE]
BLACKWELL_PCIE: Mapping[str, object] = {"gpu_arch": "sm_120", "links": PCIE}
HOPPER: Mapping[str, object] = {"gpu_arch": "sm_90", "links": NVLINK}


def resolve(
    engine: str, values: Mapping[str, Scalar], facts: Mapping[str, object], *, version: str = "", **settings: object
) -> Resolution:
    """Resolve the default with some values changed, on four GPUs."""
    space = load_space(engine)
    fields = {"engine": engine, "num_ranks": 4, "device": "cuda"} | settings
    point = {**space.default_on({"device": "cuda"}), **values}
    accepted = recorded(engine, version) if version else None
    function = {"sglang": sglang_resolve.resolve, "vllm": vllm_resolve.resolve}[engine]
    return function(point, EngineSettings.model_validate(fields), facts, accepted)


def changes(found: Resolution) -> dict[str, Scalar]:
    """Return what was replaced; every replacement has its reason and the value that was asked for."""
    assert all(each.why and each.requested != each.resolved for each in found.rewrites)
    assert all(found.assignment[each.parameter] == each.resolved for each in found.rewrites)
    return {each.parameter: each.resolved for each in found.rewrites}


@pytest.mark.parametrize(
    ("backend", "facts", "version", "resolved"),
    [
        ("default", BLACKWELL_PCIE, "0.5.16", "nccl"),
        ("default", HOPPER, "0.5.16", None),
        ("default", {**HOPPER, "links": PCIE}, "0.5.16", None),  # the fusion may switch itself on
        ("default", {}, "0.5.16", None),
        ("custom", BLACKWELL_PCIE, "0.5.16", "nccl"),
        ("custom_legacy", BLACKWELL_PCIE, "0.5.16", "nccl"),
        ("custom", HOPPER, "0.5.16", None),
        ("custom", {"gpu_arch": "sm_120"}, "0.5.16", None),
        ("torch_symm_mem", BLACKWELL_PCIE, "0.5.14", "nccl"),
        ("torch_symm_mem", {"gpu_arch": "sm_80"}, "0.5.13", "nccl"),
        ("torch_symm_mem", HOPPER, "0.5.13", None),
        ("torch_symm_mem", {}, "0.5.13", None),
        ("mscclpp", HOPPER, "0.5.13", "nccl"),
        ("mscclpp", HOPPER, "0.5.23", None),
        ("pcie_ipc", BLACKWELL_PCIE, "0.5.23", None),
        ("nccl", BLACKWELL_PCIE, "0.5.16", None),
    ],
)
def test_a_backend_of_sglang_that_is_not_used_here_is_nccl(
    backend: str, facts: Mapping[str, object], version: str, resolved: str | None
) -> None:
    """The measurement then belongs to NCCL, and no launch is spent on it twice."""
    found = resolve("sglang", {"allreduce": backend}, facts, version=version)
    assert found.error is None
    assert changes(found) == ({} if resolved is None else {"allreduce": resolved})


@pytest.mark.parametrize(
    ("backend", "ranks", "resolved"),
    [("torch_symm_mem", 3, "nccl"), ("pcie_ipc", 6, "nccl"), ("custom_legacy", 3, "nccl"), ("custom", 3, None)],
)
def test_some_backends_of_sglang_are_for_certain_numbers_of_ranks(
    backend: str, ranks: int, resolved: str | None
) -> None:
    """Nothing is logged as an error: NCCL runs in their place."""
    found = resolve("sglang", {"allreduce": backend}, {"gpu_arch": "sm_90"}, version="0.5.23", num_ranks=ranks)
    assert changes(found) == ({} if resolved is None else {"allreduce": resolved})


@pytest.mark.parametrize(
    ("values", "facts", "version", "fragment"),
    [
        ({"allreduce": "torch_symm_mem"}, BLACKWELL_PCIE, "0.5.13", "KeyError: 12"),
        ({"allreduce": "flashinfer_fusion_auto"}, BLACKWELL_PCIE, "0.5.16", "SM90"),
        ({"allreduce": "flashinfer_fusion_mnnvl"}, BLACKWELL_PCIE, "", "sm_120"),
        ({"speculative_algorithm": "EAGLE3"}, {}, "", "needs a draft model"),
        ({"speculative_algorithm": "EAGLE"}, {"model_drafts": False}, "", "needs a draft model"),
    ],
)
def test_what_sglang_refuses_costs_no_launch(
    values: Mapping[str, Scalar], facts: Mapping[str, object], version: str, fragment: str
) -> None:
    """With the reason in words."""
    assert fragment in (resolve("sglang", values, facts, version=version).error or "")


def test_a_version_that_is_not_known_decides_nothing() -> None:
    """Dead or ignored: that depends on the version, so it is found out by a launch."""
    found = resolve("sglang", {"allreduce": "torch_symm_mem"}, BLACKWELL_PCIE)
    assert found.error is None and found.rewrites == ()


@pytest.mark.parametrize(
    ("engine", "values", "draft", "made_for", "is_refused"),
    [
        ("sglang", {"speculative_algorithm": "EAGLE3"}, "d", "eagle3", False),
        ("sglang", {"speculative_algorithm": "EAGLE"}, "d", "eagle3", True),
        ("sglang", {"speculative_algorithm": "EAGLE"}, "d", "mtp", False),
        ("sglang", {"speculative_algorithm": "EAGLE"}, None, None, False),
        ("sglang", {"speculative_algorithm": "STANDALONE"}, "d", "eagle3", True),
        ("sglang", {"speculative_algorithm": "NGRAM"}, None, None, False),
        ("vllm", {"speculative_method": "draft_model"}, "d", None, False),
        ("vllm", {"speculative_method": "eagle"}, None, None, True),
        ("vllm", {"speculative_method": "mtp"}, None, None, False),
        ("vllm", {"speculative_method": "eagle3"}, "d", "draft_model", True),
        ("vllm", {"speculative_method": "ngram"}, "d", "draft_model", False),
    ],
)
def test_a_method_needs_the_draft_that_was_made_for_it(
    engine: str, values: Mapping[str, Scalar], draft: str | None, made_for: str | None, is_refused: bool
) -> None:
    """A draft of another kind crashes or is never right; one that nobody knows is tried."""
    facts = {} if made_for is None else {"draft_method": made_for}
    assert (resolve(engine, values, facts, draft_model=draft).error is not None) is is_refused


def test_a_draft_that_is_chosen_elsewhere_is_not_missed() -> None:
    """As a parameter of the user's own space, or among the fixed options."""
    settings = EngineSettings(engine="vllm", num_ranks=1, device="cuda")
    point: dict[str, Scalar] = {"speculative_method": "draft_model"}
    assert vllm_resolve.resolve(point, settings, {}).error is not None
    assert vllm_resolve.resolve({**point, "draft": "/models/near"}, settings, {}).error is None
    fixed = settings.model_copy(update={"options": {"speculative-config.model": "/models/near"}})
    assert vllm_resolve.resolve(point, fixed, {}).error is None


def test_sglang_forces_tokens_ranks_and_the_graph_it_never_had() -> None:
    """Whatever the space says about it."""
    chain = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5, "speculative_num_draft_tokens": 16}
    assert changes(resolve("sglang", chain, {}, draft_model="d")) == {"speculative_num_draft_tokens": 6}
    assert changes(resolve("sglang", {**chain, "speculative_eagle_topk": 4}, {}, draft_model="d")) == {}
    assert changes(resolve("sglang", {"moe_a2a_backend": "deepep", "ep_size": 2}, {})) == {"ep_size": 4}
    assert changes(resolve("sglang", {"prefill_cuda_graph": "disabled"}, {}, version="0.5.9")) == {
        "prefill_cuda_graph": "auto"
    }
    assert changes(resolve("sglang", {"prefill_cuda_graph": "disabled"}, {}, version="0.5.10")) == {}


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_single_rank_exchanges_nothing(engine: str) -> None:
    """Backends, experts and the draft's ranks have no meaning there."""
    values: dict[str, dict[str, Scalar]] = {
        "sglang": {"allreduce": "torch_symm_mem", "moe_a2a_backend": "deepep"},
        "vllm": {"allreduce": "custom", "expert_parallel": True, "draft_tensor_parallel_size": 1},
    }
    expected: dict[str, dict[str, Scalar]] = {
        "sglang": {"allreduce": "default", "moe_a2a_backend": "none"},
        "vllm": {"allreduce": "default", "expert_parallel": False, "draft_tensor_parallel_size": "same"},
    }
    found = resolve(engine, values[engine], HOPPER, num_ranks=1)
    assert changes(found) == expected[engine]


@pytest.mark.parametrize(
    ("backend", "facts", "ranks", "resolved"),
    [
        ("custom", {"links": PCIE}, 4, "nccl"),
        ("custom", {"links": PCIE}, 2, None),
        ("custom", HOPPER, 4, None),
        ("custom", {}, 3, "nccl"),
        ("torch_symm_mem", BLACKWELL_PCIE, 4, "nccl"),
        ("torch_symm_mem", HOPPER, 4, None),
        ("nccl_symm_mem", HOPPER, 2, "nccl"),
        ("nccl_symm_mem", HOPPER, 4, None),
        ("flashinfer_mnnvl", BLACKWELL_PCIE, 4, None),
    ],
)
def test_a_backend_of_vllm_that_is_not_used_here_is_nccl(
    backend: str, facts: Mapping[str, object], ranks: int, resolved: str | None
) -> None:
    """The line "Using […] all-reduce backends" would show PYNCCL alone."""
    found = resolve("vllm", {"allreduce": backend}, facts, num_ranks=ranks)
    assert changes(found) == ({} if resolved is None else {"allreduce": resolved})


def test_vllm_exchanges_experts_between_data_parallel_ranks_only() -> None:
    """With one data-parallel rank the all-to-all backend is never made."""
    values: dict[str, Scalar] = {"expert_parallel": True, "all2all_backend": "deepep_low_latency"}
    assert changes(resolve("vllm", values, {})) == {"all2all_backend": "allgather_reducescatter"}
    assert changes(resolve("vllm", values, {}, options={"data-parallel-size": "2"})) == {}


def test_vllm_refuses_experts_in_a_dense_model() -> None:
    """And says so at once."""
    assert "no experts" in (resolve("vllm", {"expert_parallel": True}, {"num_experts": 1}).error or "")


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_the_ranks_may_be_tuned_too(engine: str) -> None:
    """Then the launch's own number counts, not the study's."""
    function = {"sglang": sglang_resolve.resolve, "vllm": vllm_resolve.resolve}[engine]
    settings = EngineSettings(engine=engine, num_ranks=4, device="cuda")
    point: dict[str, Scalar] = {"tensor_parallel_size": 1, "allreduce": "custom"}
    assert changes(function(point, settings, HOPPER, None)) == {"allreduce": "default"}
    assert changes(function({**point, "tensor_parallel_size": 2}, settings, HOPPER, None)) == {}


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_space_of_ones_own_may_lack_any_parameter(engine: str) -> None:
    """The rules speak of the parameters that are there."""
    function = {"sglang": sglang_resolve.resolve, "vllm": vllm_resolve.resolve}[engine]
    settings = EngineSettings(engine=engine, num_ranks=1, device="cuda")
    assert function({"mine": 1}, settings, HOPPER, None) == Resolution(assignment={"mine": 1})
