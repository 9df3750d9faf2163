"""Requests become orders, with the messages of the model; answers become evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners import EngineSettings, Rung, TrialRequest, Workload
from runners.server_probes import server_orders
from runners.server_probes.passes import Shape, shape_of
from search_spaces import Assignment, Scalar, load_space
from tests.support.installed_engine import make_model

SPACE = load_space("sglang")
FACTS = {"device": "cuda"}
RELEASE = (0, 5, 16)


def request_of(
    folder: Path,
    *,
    values: Assignment | None = None,
    device: str = "cuda",
    ranks: int = 2,
    environment: Mapping[str, str] | None = None,
    engine: str = "sglang",
    sizes: tuple[int, ...] = (),
    **settings: Any,
) -> TrialRequest:
    """Return the request of a probe of SGLang's default with these values."""
    point = SPACE.normalise({**SPACE.default_on(FACTS), **(values or {})}, FACTS)
    return TrialRequest(
        study="s",
        trial=0,
        rung=Rung.PROBE,
        settings=EngineSettings(engine=engine, num_ranks=ranks, device=device, **settings),
        assignment=point,
        options=SPACE.options(point),
        variables=SPACE.environment(point),
        workload=Workload(concurrency=(8, 1)),
        probe_sizes=sizes,
        cookie="c",
        environment=environment or {},
        artifact_dir=str(folder),
    )


def plan_of(request: TrialRequest) -> dict[str, Any]:
    """Return what its probe exchanges."""
    order = server_orders(request, RELEASE)
    assert not order.not_probed
    found = order.content["plan"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model as large as those the product is for; nothing of it is loaded."""
    return make_model(tmp_path / "model", hidden_size=7168, num_hidden_layers=61)


def test_messages_are_those_of_the_model_and_the_load(model: str, tmp_path: Path) -> None:
    plan = plan_of(request_of(tmp_path, model=model))
    assert plan["levels"] == [
        [{"op": "all_reduce", "numel": 7168, "count": 122}],
        [{"op": "all_reduce", "numel": 8 * 7168, "count": 122}],
    ]
    assert (plan["has_graphs"], plan["is_graph_served"], plan["width"], plan["tp"]) == (True, True, 7168, 2)


def test_a_verify_pass_has_the_drafted_tokens_and_the_draft_its_own_passes(model: str, tmp_path: Path) -> None:
    draft = make_model(tmp_path / "draft", hidden_size=4096, num_hidden_layers=1)
    values: Assignment = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3}
    plan = plan_of(request_of(tmp_path, values=values, model=model, draft_model=draft))
    assert plan["levels"][0] == [
        {"op": "all_reduce", "numel": 4 * 7168, "count": 122},
        {"op": "all_reduce", "numel": 4096, "count": 2 * 3},
    ]


def test_the_user_s_sizes_replace_the_model_s(model: str, tmp_path: Path) -> None:
    known, unknown = request_of(tmp_path, sizes=(4096,), model=model), request_of(tmp_path, sizes=(4096,), model="x/y")
    gather = {"op": "all_gather", "numel": 2048, "count": 1}
    assert plan_of(known)["levels"] == [[{"op": "all_reduce", "numel": 2048, "count": 122}, gather]]
    assert plan_of(unknown)["levels"] == [[{"op": "all_reduce", "numel": 2048, "count": 1}, gather]]


def test_the_logits_are_gathered_once(tmp_path: Path) -> None:
    """Without that call a bare NCCL_ALGO=Tree would pass: only the sums have a tree."""
    model = make_model(tmp_path / "model", hidden_size=64, num_hidden_layers=2, vocab_size=1001)
    plan = plan_of(request_of(tmp_path, model=model))
    assert plan["levels"][1][1] == {"op": "all_gather", "numel": 8 * 501, "count": 1}


@pytest.mark.parametrize(
    ("values", "served"), [({"cuda_graph_max_bs": 0}, (False, False)), ({"cuda_graph_max_bs": 1}, (True, True))]
)
def test_graphs_are_captured_where_the_launch_would(
    model: str, tmp_path: Path, values: dict[str, Scalar], served: tuple[bool, bool]
) -> None:
    plan = plan_of(request_of(tmp_path, values=values, model=model))
    assert (plan["has_graphs"], plan["is_graph_served"]) == served


def test_the_environment_is_the_launch_s_and_what_the_engine_adds(model: str, tmp_path: Path) -> None:
    values: Assignment = {"allreduce": "nccl", "nccl_algo": "allreduce:tree"}
    user = {"NCCL_NVLS_ENABLE": "0", "NCCL_CUMEM_ENABLE": "1"}
    order = server_orders(request_of(tmp_path, values=values, model=model), RELEASE)
    assert order.variables["NCCL_ALGO"] == "allreduce:tree"
    assert order.variables["NCCL_CUMEM_ENABLE"] == "0"  # SGLang's own, where nobody says anything
    beside = server_orders(request_of(tmp_path, values=values, model=model, environment=user), RELEASE)
    assert not set(user) & set(beside.variables)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ranks": 1}, "a single rank"),
        ({"engine": "own.module:Engine"}, "own.module:Engine"),
        ({"model": "who/knows"}, "who/knows has no config.json"),
        ({"values": {"allreduce": "mscclpp"}}, "MSCCL++"),
        ({"values": {"allreduce": "nccl_nvls"}, "environment": {"NCCL_NVLS_ENABLE": "0"}}, "multicast"),
    ],
)
def test_what_cannot_be_probed_says_why(model: str, tmp_path: Path, more: dict[str, Any], why: str) -> None:
    assert why in server_orders(request_of(tmp_path, **{"model": model, **more}), RELEASE).not_probed


def test_a_model_of_the_hub_is_read_from_the_user_s_cache(tmp_path: Path) -> None:
    make_model(tmp_path / "hub" / "models--who--knows" / "snapshots" / "abc", n_embd=64, n_layer=2)
    assert shape_of("who/knows", {"HF_HUB_CACHE": str(tmp_path / "hub")}) == Shape(64, 2)
    assert shape_of("who/else", {"HF_HUB_CACHE": str(tmp_path / "hub")}) is None


def test_keys_that_the_engine_is_told_to_replace_are_replaced(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", text_config={"hidden_size": 64, "num_hidden_layers": 9})
    assert shape_of(folder, {}, json.dumps({"num_hidden_layers": 4})) == Shape(64, 4)
    assert shape_of(folder, {}, "not json") == Shape(64, 9)


def answer(collective: str, *by: str, replaced: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what the probe server answers, as far as it proves anything."""
    return {"collective": collective, "calls": [{"by": each} for each in by], "replaced": list(replaced)}


@pytest.mark.parametrize(
    ("asked", "said", "effective"),
    [
        ("custom", answer("sglang.custom_v2", "CustomAllReduceV2", "nccl"), "custom"),
        ("custom", answer("sglang.custom_v2", "nccl", "nccl"), "nccl"),
        ("custom", answer("sglang.custom", "CustomAllreduce", replaced=("v2 switches itself off",)), "custom_legacy"),
        ("torch_symm_mem", answer("nccl", "nccl", replaced=("it switches itself off",)), "nccl"),
    ],
)
def test_what_sums_in_its_place_is_an_effect(
    model: str, tmp_path: Path, asked: str, said: dict[str, Any], effective: str
) -> None:
    order = server_orders(request_of(tmp_path, values={"allreduce": asked}, model=model), RELEASE)
    (proof,) = order.effects(said)
    assert (proof.parameter, proof.requested, proof.effective) == ("allreduce", asked, effective)
    assert proof.evidence


@pytest.mark.parametrize("asked", ["default", "nccl"])
def test_nothing_is_proven_of_what_asks_for_nothing(model: str, tmp_path: Path, asked: str) -> None:
    order = server_orders(request_of(tmp_path, values={"allreduce": asked}, model=model), RELEASE)
    assert not list(order.effects(answer("nccl", "nccl")))
