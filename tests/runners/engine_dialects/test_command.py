"""One name for each option in our spaces, and a command that every recorded version of the engine accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from runners import EngineSettings, TrialRequest, Workload
from runners.engine_dialects import (
    CommandNotPossibleError,
    OptionNotInVersionError,
    build_command,
    canonical,
    fixed_and_tuned,
    spellings,
    unavailable_values,
    undeclared,
)
from runners.engine_dialects.vllm_dialect import capture_sizes
from search_spaces import Scalar, SearchSpace, load_space
from tests.support.launches import make_request
from tests.support.recorded_options import parser_of, recorded, recorded_versions

ALL = [(engine, version) for engine in ("sglang", "vllm") for version in recorded_versions(engine)]
FACTS = {"device": "cuda", "num_ranks": 8}


def request_of(folder: Path, space: SearchSpace, values: Mapping[str, Scalar], **settings: object) -> TrialRequest:
    """Return a launch at the default with some values changed."""
    point = space.normalise({**space.default_on(FACTS), **values}, FACTS)
    fields = {
        "engine": space.engine,
        "num_ranks": 8,
        "device": "cuda",
        "model": "/models/big",
        "python": "/venv/python",
    }
    return make_request(
        folder,
        settings=EngineSettings.model_validate(fields | settings),
        assignment=point,
        options=space.options(point),
        variables=space.environment(point),
        workload=Workload(seed=7),
    )


def arguments(request: TrialRequest, version: str, **more: Scalar) -> list[str]:
    """Return the arguments behind the module, for a recorded version, host and port left away."""
    accepted = recorded(request.settings.engine, version)
    command = build_command(request, accepted, host="127.0.0.1", port=30000, extra=more)
    parser_of(accepted).parse_args(list(command.argv[3:]))
    words = list(command.argv[3:])
    place = words.index("--host")
    assert words[place : place + 4] == ["--host", "127.0.0.1", "--port", "30000"]
    return words[:place] + words[place + 4 :]


@pytest.mark.parametrize(("engine", "version"), ALL)
def test_every_value_is_said_in_words_that_the_version_accepts_or_is_left_out(
    tmp_path: Path, engine: str, version: str
) -> None:
    """No launch is lost to a spelling: the parser of that version, prefixes included, takes every command."""
    space, accepted = load_space(engine), recorded(engine, version)
    missing = unavailable_values(space, accepted)
    for name, parameter in space.parameters.items():
        beside = {other: allowed[0] for other, allowed in parameter.active_when.items()}
        for value in parameter.domain:
            request = request_of(tmp_path, space, {**beside, name: value}, draft_model="/models/draft")
            if value in missing.get(name, {}):
                with pytest.raises(OptionNotInVersionError):
                    build_command(request, accepted, host="127.0.0.1", port=1)
            else:
                arguments(request, version)


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        (
            "0.5.6",
            {"custom", "pcie_ipc", "flashinfer_fusion_trtllm", "flashinfer_fusion_mnnvl", "flashinfer_fusion_cutedsl"},
        ),
        ("0.5.13", {"pcie_ipc", "flashinfer_fusion_trtllm", "flashinfer_fusion_mnnvl", "flashinfer_fusion_cutedsl"}),
        ("0.5.16", {"flashinfer_fusion_cutedsl", "pcie_ipc"}),
        ("0.5.20", {"flashinfer_fusion_cutedsl", "pcie_ipc"}),
        ("0.5.21", set[str]()),
    ],
)
def test_what_a_version_of_sglang_does_not_have_is_known_before_the_study(version: str, missing: set[str]) -> None:
    """PCIe-IPC came with 0.5.21: before, its variable is ignored without a word."""
    found = unavailable_values(load_space("sglang"), recorded("sglang", version))
    assert set(found.get("allreduce", {})) == missing
    assert all(reason.startswith("error: ") and version in reason for reason in found.get("allreduce", {}).values())


@pytest.mark.parametrize(
    ("version", "values", "expected"),
    [
        ("0.5.13", {"cuda_graph_max_bs": 16}, ["--cuda-graph-max-bs", "16"]),
        ("0.5.14", {"cuda_graph_max_bs": 16}, ["--cuda-graph-max-bs-decode", "16"]),
        ("0.5.20", {"cuda_graph_max_bs": 16}, ["--cuda-graph-max-bs-decode", "16"]),
        ("0.5.13", {"cuda_graph_max_bs": 0}, ["--disable-cuda-graph"]),
        ("0.5.14", {"cuda_graph_max_bs": 0}, ["--disable-decode-cuda-graph"]),
        ("0.5.9", {"prefill_cuda_graph": "disabled"}, []),
        ("0.5.10", {"prefill_cuda_graph": "disabled"}, ["--disable-piecewise-cuda-graph"]),
        ("0.5.14", {"prefill_cuda_graph": "disabled"}, ["--disable-prefill-cuda-graph"]),
        ("0.5.9", {"allreduce": "nccl"}, ["--disable-custom-all-reduce"]),
        (
            "0.5.10",
            {"allreduce": "nccl"},
            ["--disable-custom-all-reduce", "--enforce-disable-flashinfer-allreduce-fusion"],
        ),
        ("0.5.13", {"allreduce": "flashinfer_fusion_auto"}, ["--enable-flashinfer-allreduce-fusion"]),
        ("0.5.14", {"allreduce": "flashinfer_fusion_auto"}, ["--flashinfer-allreduce-fusion-backend", "auto"]),
        ("0.5.23", {"allreduce": "custom_legacy"}, ["--enforce-disable-flashinfer-allreduce-fusion"]),
    ],
)
def test_a_value_of_sglang_has_the_words_of_its_version(
    tmp_path: Path, version: str, values: Mapping[str, Scalar], expected: list[str]
) -> None:
    """Renamed from 0.5.14 on; the old names are an error (exit code 2) from 0.5.20 on."""
    base = ["--model-path", "/models/big", "--tp-size", "8", "--random-seed", "7"]
    assert arguments(request_of(tmp_path, load_space("sglang"), values), version) == base + expected


def test_a_tree_with_a_draft_is_said_completely(tmp_path: Path) -> None:
    """SGLang wants steps, width and tokens together, or none of them."""
    request = request_of(
        tmp_path,
        load_space("sglang"),
        {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5},
        draft_model="/models/draft",
    )
    words = arguments(request, "0.5.16")
    assert words[6:] == [
        *("--speculative-draft-model-path", "/models/draft", "--speculative-algorithm", "EAGLE3"),
        *("--speculative-num-steps", "5", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "6"),
    ]


def test_the_baseline_does_not_hear_of_the_draft(tmp_path: Path) -> None:
    """What the user fixed about speculation is left away where nothing is drafted."""
    fixed = {"speculative-draft-model-quantization": "unquant", "trust-remote-code": True}
    request = request_of(tmp_path, load_space("sglang"), {}, options=fixed, draft_model="/models/draft")
    assert arguments(request, "0.5.16")[6:] == ["--trust-remote-code"]
    fixed = {"speculative-config": '{"quantization": "fp8"}'}
    request = request_of(tmp_path, load_space("vllm"), {}, options=fixed, draft_model="/models/draft")
    assert "--speculative-config" not in arguments(request, "0.33.0")


def test_fixed_options_in_any_versions_words_are_said_in_this_ones(tmp_path: Path) -> None:
    """A command that was written for an older engine keeps its meaning; what the assignment says goes before it."""
    fixed: dict[str, Scalar] = {
        "trust-remote-code": "true",
        "disable-radix-cache": "false",
        "cuda-graph-max-bs-decode": "24",
        "tensor-parallel-size": 4,
        "disable-piecewise-cuda-graph": True,
        "enable-metrics": False,
    }
    request = request_of(tmp_path, load_space("sglang"), {}, options=fixed)
    words = arguments(request, "0.5.13")
    assert words == [
        *("--model-path", "/models/big", "--tp-size", "4", "--random-seed", "7"),
        *("--trust-remote-code", "--cuda-graph-max-bs", "24", "--disable-piecewise-cuda-graph"),
    ]
    request = request_of(tmp_path, load_space("sglang"), {"cuda_graph_max_bs": 8}, options=fixed)
    words = arguments(request, "0.5.20")
    assert words[-3:] == ["--cuda-graph-max-bs-decode", "8", "--disable-prefill-cuda-graph"]


def test_vllm_counts_graph_sizes_in_tokens_of_a_verify_pass(tmp_path: Path) -> None:
    """A decode graph is replayed only at multiples of 1 + K tokens."""
    space = load_space("vllm")
    words = arguments(request_of(tmp_path, space, {"cuda_graph_max_bs": 8}), "0.32.0")
    assert words[-5:] == ["--cudagraph-capture-sizes", "1", "2", "4", "8"]
    speculative = {"speculative_method": "ngram", "num_speculative_tokens": 4, "cuda_graph_max_bs": 16}
    words = arguments(request_of(tmp_path, space, speculative), "0.32.0")
    place = words.index("--cudagraph-capture-sizes")
    assert words[place + 1 : place + 6] == ["5", "10", "20", "40", "80"]
    assert arguments(request_of(tmp_path, space, {"cuda_graph_max_bs": 0}), "0.32.0")[-1] == "--enforce-eager"


@pytest.mark.parametrize(
    ("batch", "tokens", "sizes"), [(1, 1, [1]), (3, 1, [1, 2, 3]), (20, 3, [3, 6, 12, 24, 48, 60])]
)
def test_capture_sizes_end_at_the_largest_batch(batch: int, tokens: int, sizes: list[int]) -> None:
    """Ascending multiples of the tokens of a request, the largest batch among them."""
    assert capture_sizes(batch, tokens) == sizes


def test_what_stands_behind_dots_becomes_one_json_object(tmp_path: Path) -> None:
    """The user's own keys stay, numbers are numbers, and the assignment goes before."""
    fixed = {"speculative-config": '{"num_speculative_tokens": 9, "draft_load_config": {"load_format": "dummy"}}'}
    values = {"allreduce": "nccl", "speculative_method": "eagle3", "draft_tensor_parallel_size": 1}
    request = request_of(tmp_path, load_space("vllm"), values, options=fixed, draft_model="/models/draft")
    words = arguments(request, "0.31.0")
    assert json.loads(words[words.index("--speculative-config") + 1]) == {
        "method": "eagle3",
        "model": "/models/draft",
        "num_speculative_tokens": 3,
        "draft_tensor_parallel_size": 1,
        "draft_load_config": {"load_format": "dummy"},
    }
    compiled = json.loads(words[words.index("--compilation-config") + 1])
    assert compiled == {"pass_config": {"fuse_allreduce_rms": False}}


def test_the_command_is_an_argument_list_in_the_users_python(tmp_path: Path) -> None:
    """Variables go beside it, those of the assignment before the fixed ones."""
    space = load_space("vllm")
    request = request_of(
        tmp_path, space, {"allreduce": "nccl", "nccl_algo": "Tree"}, variables={"NCCL_ALGO": "Ring", "MY_VARIABLE": "1"}
    )
    command = build_command(request, recorded("vllm", "0.33.0"), host="127.0.0.1", port=8000)
    assert command.argv[:5] == ("/venv/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/big")
    assert command.env == {
        "MY_VARIABLE": "1",
        "NCCL_ALGO": "Tree",
        "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",
        "VLLM_ALLREDUCE_USE_FLASHINFER": "0",
    }


def test_more_options_are_added_where_the_version_has_them(tmp_path: Path) -> None:
    """The life cycle asks for a port of NCCL's and a watchdog; old versions have no watchdog of that kind."""
    request = request_of(tmp_path, load_space("sglang"), {})
    more: dict[str, Scalar] = {"nccl-port": 4000, "soft-watchdog-timeout": 300}
    assert arguments(request, "0.5.7", **more)[-4:] == ["--nccl-port", "4000", "--soft-watchdog-timeout", "300"]
    assert arguments(request, "0.5.6", **more)[-2:] == ["--nccl-port", "4000"]


@pytest.mark.parametrize(
    "content",
    [
        {"method": "ngram", "revision": "0123", "model": "8", "parallel_drafting": True},
        {"method": "ngram", "num_speculative_tokens_per_batch_size": [[1, 3], [8, 1]]},
        {"method": "ngram", "draft_load_config": {"a": {"b.c": 1.5}, "d": None}},
    ],
)
def test_a_fixed_json_object_keeps_its_content(tmp_path: Path, content: dict[str, object]) -> None:
    """Texts that look like numbers, lists, and keys that have dots themselves."""
    request = request_of(tmp_path, load_space("vllm"), {}, options={"speculative-config": json.dumps(content)})
    words = arguments(request, "0.33.0")
    assert json.loads(words[words.index("--speculative-config") + 1]) == content


@pytest.mark.parametrize(
    ("options", "values", "fragments"),
    [
        (
            {"moe-a2a-backend": "teleport"},
            {},
            ("error: argument --moe-a2a-backend: invalid choice", "deepep", "0.5.16"),
        ),
        ({"moe-a2a-backnd": "none"}, {}, ("error: unrecognized arguments: --moe-a2a-backnd", "'moe-a2a-backend'")),
        ({"tp-size": True}, {}, ("error: argument --tp-size: needs a value",)),
        ({"enable-metrics": "loud"}, {}, ("error: argument --enable-metrics: takes no value", "'loud'")),
        ({}, {"allreduce": "pcie_ipc"}, ("error: sglang 0.5.16 does not read", "PCIE_IPC")),
    ],
)
def test_what_cannot_be_said_is_answered_like_the_engine_would(
    tmp_path: Path, options: Mapping[str, Scalar], values: Mapping[str, Scalar], fragments: tuple[str, ...]
) -> None:
    """The same words that the classifier knows, with the nearest name."""
    request = request_of(tmp_path, load_space("sglang"), values, options=options)
    with pytest.raises(OptionNotInVersionError) as caught:
        build_command(request, recorded("sglang", "0.5.16"), host="127.0.0.1", port=1)
    assert all(fragment in str(caught.value) for fragment in fragments)


def test_a_variable_that_the_user_fixed_is_the_users(tmp_path: Path) -> None:
    """Engines read some variables that they do not declare; that this one is not declared is a note."""
    fixed = {"SGLANG_NO_SUCH": "1"}
    request = request_of(tmp_path, load_space("sglang"), {}, variables=fixed)
    command = build_command(request, recorded("sglang", "0.5.16"), host="127.0.0.1", port=1)
    assert command.env["SGLANG_NO_SUCH"] == "1"
    assert "does not read" in undeclared(fixed, recorded("sglang", "0.5.16"))["SGLANG_NO_SUCH"]
    assert undeclared({"SGLANG_DEBUG_SYMM_MEM": "1", "HF_HOME": "/x"}, recorded("sglang", "0.5.16")) == {}


def test_a_switch_that_is_not_there_may_be_off(tmp_path: Path) -> None:
    """The older custom all-reduce is what runs before the variable that chooses it exists."""
    request = request_of(tmp_path, load_space("sglang"), {"allreduce": "custom_legacy"})
    command = build_command(request, recorded("sglang", "0.5.6"), host="127.0.0.1", port=1)
    assert command.env == {"SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2": "0"}


def test_a_study_without_a_model_is_refused(tmp_path: Path) -> None:
    """Before anything is launched."""
    request = request_of(tmp_path, load_space("vllm"), {}, model=None)
    with pytest.raises(CommandNotPossibleError, match="model"):
        build_command(request, recorded("vllm", "0.33.0"), host="127.0.0.1", port=1)


def test_our_names_for_what_any_version_calls_otherwise() -> None:
    """One name, so that a fixed option and a parameter are seen to be about the same."""
    assert canonical("sglang", {"disable-cuda-graph": True, "speculative-algorithm": "NEXTN", "tp": 8}) == {
        "disable-decode-cuda-graph": True,
        "disable-prefill-cuda-graph": True,
        "speculative-algorithm": "EAGLE",
        "tp-size": 8,
    }
    assert canonical("vllm", {"speculative-config": '{"method": "deepseek_mtp"}', "hf-overrides": '{"a": 1}'}) == {
        "speculative-config.method": "mtp",
        "hf-overrides": '{"a": 1}',
    }
    assert canonical("vllm", {"compilation-config": "3"}) == {"compilation-config": "3"}


def test_a_message_in_any_versions_words_is_about_one_of_our_options() -> None:
    """So that the parameter behind it can be blamed."""
    words = spellings("sglang")
    assert words["cuda-graph-max-bs-decode"] == "cuda-graph-max-bs"
    assert words["disable-cuda-graph"] == words["cuda-graph-backend-decode"] == "disable-decode-cuda-graph"
    assert words["enable-flashinfer-allreduce-fusion"] == "flashinfer-allreduce-fusion-backend"
    assert spellings("vllm")["cudagraph-capture-sizes"] == "cuda-graph-max-bs"
    assert spellings("torch") == {}


def test_what_is_fixed_and_tuned_at_once_is_named() -> None:
    """The engine cannot be told both; a parameter that is pinned to saying nothing leaves it to the user."""
    space = load_space("sglang")
    settings = EngineSettings(
        engine="sglang",
        num_ranks=1,
        device="cuda",
        options={"cuda-graph-max-bs-decode": 24, "trust-remote-code": True},
        variables={"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO"},
    )
    assert fixed_and_tuned(settings, space) == {"cuda-graph-max-bs": "cuda_graph_max_bs", "NCCL_ALGO": "nccl_algo"}
    pinned = space.narrowed({"cuda_graph_max_bs": "auto", "nccl_algo": "auto"}, {})
    assert fixed_and_tuned(settings, pinned) == {}
