"""What a server's settings select, before anything is launched."""

from __future__ import annotations

import pytest

from runners.server_probes import sglang_probe, vllm_probe
from runners.server_probes.choice import Choice
from runners.server_probes.passes import StepRows
from search_spaces import Scalar, load_space

SGLANG, VLLM = load_space("sglang"), load_space("vllm")
NEW, OLD = (0, 5, 16), (0, 5, 10)


def sglang(value: str, release: tuple[int, ...] = NEW, **environment: str) -> Choice:
    """Return what a value of the catalogue's parameter selects in SGLang."""
    said = SGLANG.parameters["allreduce"].switches_of(value)
    return sglang_probe.choose(said.flags, {**environment, **said.env}, release)


def vllm(value: str, **environment: str) -> Choice:
    """Return what a value of the catalogue's parameter selects in vLLM."""
    said = VLLM.parameters["allreduce"].switches_of(value)
    return vllm_probe.choose(said.flags, {**environment, **said.env}, (0, 32))


@pytest.mark.parametrize(
    ("value", "release", "chain"),
    [
        ("default", NEW, ("sglang.custom_v2", "sglang.custom", "nccl")),
        ("default", OLD, ("sglang.custom", "nccl")),
        ("nccl", NEW, ("nccl",)),
        ("nccl_nvls", NEW, ("nccl",)),
        ("custom", NEW, ("sglang.custom_v2", "sglang.custom", "nccl")),
        ("custom_legacy", NEW, ("sglang.custom", "nccl")),
        ("torch_symm_mem", NEW, ("sglang.torch_symm_mem", "nccl")),
    ],
)
def test_sglang_sums_with_what_its_dispatch_takes_first(
    value: str, release: tuple[int, ...], chain: tuple[str, ...]
) -> None:
    assert sglang(value, release).chain == chain


@pytest.mark.parametrize(
    ("value", "chain"),
    [
        ("default", ("vllm.flashinfer", "vllm.custom", "vllm.torch_symm_mem", "nccl")),
        ("nccl", ("nccl",)),
        ("custom", ("vllm.custom", "nccl")),
        ("torch_symm_mem", ("vllm.torch_symm_mem", "nccl")),
        ("flashinfer_trtllm", ("vllm.flashinfer", "nccl")),
        ("flashinfer_mnnvl", ("vllm.flashinfer", "nccl")),
    ],
)
def test_vllm_sums_with_what_its_dispatch_takes_first(value: str, chain: tuple[str, ...]) -> None:
    assert vllm(value).chain == chain


def test_every_value_of_the_catalogues_is_probed_or_says_why_not() -> None:
    """A value that is added to a catalogue has to be thought of here."""
    for choose, space in ((sglang, SGLANG), (vllm, VLLM)):
        for value in space.parameters["allreduce"].domain:
            choice = choose(str(value))
            assert bool(choice.chain) != bool(choice.not_probed), value
    unseen = {value for value in map(str, SGLANG.parameters["allreduce"].domain) if sglang(value).not_probed}
    fused = {value for value in map(str, SGLANG.parameters["allreduce"].domain) if value.startswith("flashinfer")}
    assert unseen == fused | {"nccl_symm_mem", "mscclpp", "pcie_ipc"}
    assert {value for value in map(str, VLLM.parameters["allreduce"].domain) if vllm(value).not_probed} == {
        "flashinfer_fusion",
        "nccl_symm_mem",
        "pcie_ipc",
    }


@pytest.mark.parametrize("forbidding", ["NCCL_NVLS_ENABLE=0", "TORCH_SYMM_MEM_DISABLE_MULTICAST=1"])
def test_multicast_is_not_used_against_the_environment(forbidding: str) -> None:
    name, text = forbidding.split("=")
    for choice in (sglang("nccl_nvls"), vllm("flashinfer_mnnvl"), vllm("default")):
        assert choice.on({}) == choice
        assert forbidding in choice.on({name: text}).not_probed
    for choice in (sglang("nccl"), sglang("default"), vllm("flashinfer_trtllm")):
        assert choice.on({name: text}) == choice


def test_only_the_value_that_selects_multicast_switches_it_on() -> None:
    selected = sglang("nccl_nvls")
    assert selected.variables["NCCL_NVLS_ENABLE"] == "1" and "NCCL_NVLS_ENABLE" in selected.forced
    assert sglang("nccl").variables["NCCL_NVLS_ENABLE"] == "0" and not sglang("nccl").forced


def test_experts_that_travel_by_kernels_of_their_own_are_not_probed() -> None:
    named = SGLANG.parameters["moe_a2a_backend"].switches_of("deepep").flags
    assert "deepep" in sglang_probe.choose(named, {}, NEW).not_probed


@pytest.mark.parametrize(
    ("named", "rows"),
    [
        ({}, StepRows()),
        ({"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": "8"}, StepRows(verify=8)),
        (
            {"speculative-algorithm": "EAGLE3", "speculative-num-steps": "2", "speculative-eagle-topk": "4"},
            StepRows(verify=3, draft_passes=2, draft=4),
        ),
        (
            {"speculative-algorithm": "EAGLE3", "speculative-num-draft-tokens": "6"},
            StepRows(verify=6, draft_passes=3),
        ),
    ],
)
def test_tokens_of_sglang_s_passes(named: dict[str, Scalar], rows: StepRows) -> None:
    assert sglang_probe.rows(named) == rows


@pytest.mark.parametrize(
    ("method", "draft_tp", "rows"),
    [
        ("eagle3", "", StepRows(verify=4, draft_passes=3)),
        ("eagle3", "1", StepRows(verify=4)),
        ("ngram", "", StepRows(verify=4)),
    ],
)
def test_tokens_of_vllm_s_passes(method: str, draft_tp: str, rows: StepRows) -> None:
    """A draft that is whole on each rank, or that is no model, exchanges nothing."""
    named = {"speculative-config.method": method, "speculative-config.num_speculative_tokens": 3}
    more = {"speculative-config.draft_tensor_parallel_size": draft_tp} if draft_tp else {}
    assert vllm_probe.rows({**named, **more}) == rows
    assert vllm_probe.rows({}) == StepRows()


@pytest.mark.parametrize(
    ("named", "limit"),
    [({}, None), ({"cuda-graph-max-bs": "8"}, 8), ({"disable-cuda-graph": True}, 0)],
)
def test_graphs_of_sglang(named: dict[str, Scalar], limit: int | None) -> None:
    assert sglang_probe.graph_limit(named) == limit


@pytest.mark.parametrize(
    ("named", "limit"),
    [
        ({}, None),
        ({"cuda-graph-max-bs": "8"}, 8),
        ({"enforce-eager": True}, 0),
        ({"enforce-eager": "false"}, None),
        ({"compilation-config.cudagraph_mode": "NONE"}, 0),
    ],
)
def test_graphs_of_vllm(named: dict[str, Scalar], limit: int | None) -> None:
    assert vllm_probe.graph_limit(named) == limit
