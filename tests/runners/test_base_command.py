"""What the user already runs is taken apart: fixed options, fixed variables, and where the search starts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from runners import EngineSettings, Workload
from runners.base_command import BaseCommand, split_base_command
from runners.engine_dialects import build_command
from search_spaces import Scalar, SpecificationError, load_space
from tests.support.launches import make_request
from tests.support.recorded_options import recorded

SGLANG = "python -m sglang.launch_server --model-path /models/big "
VLLM = "vllm serve /models/big "


def split(command: str, version: str = "") -> BaseCommand:
    """Take a command of the engine that it names apart."""
    engine = "sglang" if "sglang" in command else "vllm"
    return split_base_command(command, load_space(engine), recorded(engine, version) if version else None)


def test_a_command_of_sglang_is_taken_apart() -> None:
    """Variables, model, draft, ranks, parameters, and the rest."""
    found = split(
        "NCCL_DEBUG=INFO NCCL_ALGO=allreduce:tree /venv/bin/python3.12 -u -m sglang.launch_server "
        "--model-path /models/big --tp 8 --trust-remote-code --host 0.0.0.0 --port=30000 \\\n"
        "  --disable-custom-all-reduce --enforce-disable-flashinfer-allreduce-fusion --mem-fraction-static 0.80 "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path /models/draft "
        "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16 "
        "--json-model-override-args '{\"num_hidden_layers\": 4}'"
    )
    assert (found.engine, found.model, found.draft_model, found.num_ranks) == (
        "sglang",
        "/models/big",
        "/models/draft",
        8,
    )
    assert found.python == "/venv/bin/python3.12"
    assert found.assignment == {
        "allreduce": "nccl",
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 5,
        "speculative_eagle_topk": 4,
        "speculative_num_draft_tokens": 16,
        "nccl_algo": "allreduce:tree",
        "mem_fraction_static": 0.8,
    }
    assert found.options == {"trust-remote-code": True, "json-model-override-args": '{"num_hidden_layers": 4}'}
    assert found.variables == {"NCCL_DEBUG": "INFO"}
    assert found.pins == {}
    assert found.notes == ("--host is chosen by the agent", "--port is chosen by the agent")


def test_a_command_of_vllm_is_taken_apart() -> None:
    """JSON objects key by key, short options, and underscores."""
    found = split(
        VLLM + "-tp 4 --max_num_seqs 32 -ep --enforce-eager --kv-cache-dtype=fp8 "
        '--speculative-config \'{"method": "eagle3", "model": "/models/draft", "num_speculative_tokens": 3, '
        '"draft_load_config": {"load_format": "dummy"}}\' '
        '-cc \'{"pass_config": {"fuse_allreduce_rms": false}, "custom_ops": ["all"]}\''
    )
    assert (found.model, found.draft_model, found.num_ranks) == ("/models/big", "/models/draft", 4)
    assert found.assignment == {
        "allreduce": "custom",
        "speculative_method": "eagle3",
        "num_speculative_tokens": 3,
        "cuda_graph_max_bs": 0,
        "expert_parallel": True,
        "max_num_seqs": 32,
    }
    assert found.options == {
        "kv-cache-dtype": "fp8",
        "speculative-config.draft_load_config.load_format": "dummy",
        "compilation-config.custom_ops": '["all"]',
    }
    assert "which also says VLLM_ALLREDUCE_USE_SYMM_MEM=0" in found.notes[0]


@pytest.mark.parametrize(
    "command",
    [
        "python -m vllm.entrypoints.openai.api_server --model /models/big",
        "python3 -m vllm.entrypoints.cli.main serve /models/big",
        "env CUDA_VISIBLE_DEVICES=0 vllm serve --model /models/big",
        ["vllm", "serve", "/models/big"],
        "exec vllm serve /models/big",
        "sglang serve /models/big",
        "sglang serve --model /models/big",
    ],
)
def test_every_way_to_start_an_engine_is_known(command: str | list[str]) -> None:
    """The model stands where that way has it."""
    engine = "sglang" if "sglang" in command else "vllm"
    found = split_base_command(command, load_space(engine))
    assert all("name another Python" in note for note in found.notes)
    assert (found.engine, found.model, found.assignment) == (engine, "/models/big", {})


@pytest.mark.parametrize(
    ("rest", "assignment"),
    [
        ("--cuda-graph-max-bs 32", {"cuda_graph_max_bs": 32}),
        ("--cuda-graph-max-bs-decode 32", {"cuda_graph_max_bs": 32}),
        ("--disable-cuda-graph", {"cuda_graph_max_bs": 0, "prefill_cuda_graph": "disabled"}),
        ("--cuda-graph-backend-decode disabled", {"cuda_graph_max_bs": 0}),
        ("--enable-flashinfer-allreduce-fusion", {"allreduce": "flashinfer_fusion_auto"}),
        ("--flashinfer-allreduce-fusion-backend=mnnvl", {"allreduce": "flashinfer_fusion_mnnvl"}),
        ("--speculative-algorithm NEXTN", {"speculative_algorithm": "EAGLE"}),
        ("--expert-parallel-size 8 --moe-a2a-backend deepep", {"ep_size": 8, "moe_a2a_backend": "deepep"}),
    ],
)
def test_old_and_new_spellings_mean_the_same_point(rest: str, assignment: Mapping[str, Scalar]) -> None:
    """Nothing of them stays fixed."""
    found = split(SGLANG + rest)
    assert (found.assignment, found.options) == (assignment, {})
    assert not any("also says" in note for note in found.notes)


@pytest.mark.parametrize(
    ("rest", "value", "beside"),
    [
        ("--disable-custom-all-reduce", "nccl", "--enforce-disable-flashinfer-allreduce-fusion"),
        ("--enable-torch-symm-mem", "torch_symm_mem", "--disable-custom-all-reduce"),
        ("--enable-mscclpp", "mscclpp", "--disable-custom-all-reduce"),
    ],
)
def test_some_of_a_values_switches_mean_that_value_and_the_rest_is_told(rest: str, value: str, beside: str) -> None:
    """The value that says them, and the least beside them."""
    found = split(SGLANG + rest)
    assert (found.assignment, found.options) == ({"allreduce": value}, {})
    assert f"allreduce={value}, which also says" in found.notes[-1] and beside in found.notes[-1]


@pytest.mark.parametrize(
    ("command", "name", "pinned", "kept"),
    [
        (SGLANG + "--mem-fraction-static 0.83", "mem_fraction_static", "auto", {"mem-fraction-static": "0.83"}),
        (SGLANG + "--cuda-graph-bs 1 2 24", "cuda_graph_max_bs", "auto", {"cuda-graph-bs": "1 2 24"}),
        (VLLM + "--max-cudagraph-capture-size 48", "cuda_graph_max_bs", "auto", {"max-cudagraph-capture-size": "48"}),
        (
            SGLANG + "--enable-mscclpp --enable-nccl-nvls",
            "allreduce",
            "default",
            {"enable-mscclpp": True, "enable-nccl-nvls": True},
        ),
    ],
)
def test_what_no_value_says_stays_fixed_and_its_parameter_is_left_alone(
    command: str, name: str, pinned: Scalar, kept: Mapping[str, Scalar]
) -> None:
    """The user's own setting is not replaced behind their back."""
    found = split(command)
    assert (found.assignment, found.pins, found.options) == ({}, {name: pinned}, kept)
    assert "is not searched" in found.notes[-1]


def test_a_variable_that_no_value_has_stays_fixed_too() -> None:
    """An algorithm list of the user's own."""
    found = split("NCCL_ALGO='ring,tree;allreduce:tree' " + SGLANG)
    assert (found.pins, found.variables) == ({"nccl_algo": "auto"}, {"NCCL_ALGO": "ring,tree;allreduce:tree"})


@pytest.mark.parametrize(
    ("command", "fragment"),
    [
        ("", "starts no engine"),
        ("nohup vllm serve /models/big", "starts no engine"),
        ("python server.py", "starts no engine"),
        ("python -m", "starts no engine"),
        (VLLM + "| tee log", "needs a shell"),
        (VLLM + "2>&1", "needs a shell"),
        ("cd /x && vllm serve m", "needs a shell"),
        ("vllm serve $MODEL", "needs a shell"),
        ("vllm serve `cat model`", "needs a shell"),
        ("vllm serve 'open", "cannot be split"),
        (VLLM + "--dtype auto extra words -tp 4 more", "stands alone"),
        (VLLM + "-x 3", "-x"),
        (VLLM + "-O3", "--optimization-level 3"),
        (VLLM + "-tp eight", "number of ranks"),
        (SGLANG + "--speculative-algorithm EAGLE3 --speculative-num-steps 6", "speculative_num_steps: 1, 2, 3"),
        (VLLM + '--speculative-config \'{"num_speculative_tokens": 3, "model": "d"}\'', "no method"),
    ],
)
def test_what_cannot_be_taken_apart_is_one_clear_error(command: str, fragment: str) -> None:
    """It names the key that the user wrote it under."""
    version = "0.33.0" if command.startswith(VLLM) else ""
    with pytest.raises(SpecificationError) as caught:
        split(command, version)
    assert caught.value.key == "base_cmd"
    assert fragment in str(caught.value)


def test_a_command_of_another_engine_is_refused() -> None:
    """With the option that chooses the engine."""
    with pytest.raises(SpecificationError, match="--engine vllm"):
        split_base_command(VLLM, load_space("sglang"))


def test_the_option_list_tells_a_flag_from_an_option_with_a_value() -> None:
    """Otherwise the model would be taken for the flag's value."""
    found = split("vllm serve --enable-expert-parallel /models/big", "0.33.0")
    assert (found.model, found.assignment) == ("/models/big", {"expert_parallel": True})


def test_the_python_beside_a_console_script_is_the_engines(tmp_path: Path) -> None:
    """A script runs in the environment that it lies in."""
    for name in ("vllm", "python"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert split(f"{tmp_path}/vllm serve /models/big").python == str(tmp_path / "python")
    assert split("/no/such/vllm serve /models/big").python is None


@pytest.mark.parametrize(
    ("command", "version"),
    [
        (
            SGLANG + "--tp 8 --speculative-algorithm NGRAM --speculative-num-draft-tokens 8 --cuda-graph-max-bs 8",
            "0.5.22",
        ),
        (SGLANG + "--tensor-parallel-size 2 --disable-cuda-graph --cuda-graph-bs 1 2 4", "0.5.9"),
        (
            VLLM + "-tp 2 --max-num-seqs 77 --speculative-config.method ngram --speculative-config.prompt_lookup_max=3",
            "0.31.0",
        ),
    ],
)
def test_what_was_taken_apart_is_put_together_to_the_same_settings(tmp_path: Path, command: str, version: str) -> None:
    """Splitting the built command again gives the same parts, in the words of whichever version."""
    first = split(command, version)
    space = load_space(first.engine)
    facts = {"device": "cuda", "num_ranks": first.num_ranks}
    point = space.normalise({**space.default_on(facts), **first.assignment, **first.pins}, facts)
    request = make_request(
        tmp_path,
        settings=EngineSettings.model_validate(
            {"engine": first.engine, "num_ranks": first.num_ranks, "device": "cuda", "model": first.model}
            | {"options": first.options, "variables": first.variables, "python": "/venv/bin/python"}
        ),
        assignment=point,
        options=space.options(point),
        variables=space.environment(point),
        workload=Workload(),
    )
    built = build_command(request, recorded(first.engine, version), host="127.0.0.1", port=1)
    again = split(shlex.join(built.argv), version)
    active = {name for name, each in space.parameters.items() if each.goes_with(point)}
    defaults = space.default_on(facts)
    assert {**defaults, **again.assignment} == {
        name: point[name] if name in active else defaults[name] for name in point
    }
    assert again.pins == first.pins
    seed = {"random-seed": "0"} if first.engine == "sglang" else {"seed": "0"}
    assert {name: str(value) for name, value in again.options.items()} == {
        name: str(value) for name, value in {**first.options, **seed}.items()
    }
