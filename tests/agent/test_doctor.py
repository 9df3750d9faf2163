"""The doctor: what this node and this version can use, why not, and how to get it; nothing is launched."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from agent.doctor import EngineCheck, State, ValueCheck, examine
from agent.home import Home
from agent.node_checks import node_checks
from agent.spec import load_spec
from search_spaces import Scalar
from tests.agent.conftest import Installed

STUDY = {"device": "cpu", "tp": 2}


def checked(engine: str, python: str, **given: object) -> EngineCheck:
    """Examine an engine on two CPU ranks, unless the study says otherwise."""
    return examine(load_spec(None, {"engine": engine, "engine_python": python, **STUDY, **given}))[0]


def value_of(check: EngineCheck, parameter: str, value: Scalar) -> ValueCheck:
    """Return what is known about one value."""
    assert check.parameters is not None
    return next(each for each in check.parameters[parameter] if each.value == value)


@pytest.fixture(scope="module")
def sglang(installed: Installed) -> EngineCheck:
    """SGLang 0.5.16 with a model of 64 experts and no draft."""
    return checked("sglang", installed.sglang, model=installed.model)


@pytest.mark.parametrize(
    ("parameter", "value", "state", "why", "cure"),
    [
        ("allreduce", "nccl", State.USABLE, "", ""),
        ("allreduce", "pcie_ipc", State.NOT_IN_VERSION, "SGLANG_ENABLE_PCIE_IPC", "pip install --upgrade sglang"),
        ("allreduce", "flashinfer_fusion_auto", State.PACKAGE_MISSING, "flashinfer", "flashinfer-python"),
        ("speculative_algorithm", "EAGLE3", State.REFUSED, "needs a draft", "--draft"),
        ("speculative_algorithm", "NGRAM", State.USABLE, "", ""),
        ("speculative_num_draft_tokens", 8, State.USABLE, "", ""),
        ("ep_size", 2, State.USABLE, "", ""),
        ("ep_size", 16, State.REFUSED, "ranks", "nothing can be installed"),
        ("moe_a2a_backend", "mooncake", State.PACKAGE_MISSING, "mooncake", "mooncake-transfer-engine"),
        ("moe_a2a_backend", "deepep_v2", State.NOT_IN_VERSION, "deepep_v2", "0.5.19"),
        ("nccl_algo", "allreduce:tree", State.NOT_HERE, "device cuda", ""),
        ("mem_fraction_static", 0.8, State.USABLE, "", ""),
    ],
)
def test_each_value_has_a_state_a_reason_and_a_cure(
    sglang: EngineCheck, parameter: str, value: Scalar, state: State, why: str, cure: str
) -> None:
    """What decides is the version, the node, the model, the ranks, and the packages beside the engine."""
    found = value_of(sglang, parameter, value)
    assert found.state is state
    assert why in found.why
    assert cure in found.cure
    assert bool(found.why) == (state is not State.USABLE)


def test_every_value_of_the_space_is_examined(sglang: EngineCheck, installed: Installed) -> None:
    """Also those that a study would leave out."""
    assert (sglang.version, sglang.python, sglang.is_usable) == ("0.5.16", installed.sglang, True)
    assert sglang.parameters is not None
    assert [each.value for each in sglang.parameters["moe_a2a_backend"]][-1] == "megamoe"


def test_a_draft_decides_which_methods_can_be_used(installed: Installed) -> None:
    """An EAGLE-3 head is no EAGLE head."""
    found = checked("vllm", installed.vllm, model=installed.model, draft=installed.draft)
    assert value_of(found, "speculative_method", "eagle3").state is State.USABLE
    refused = value_of(found, "speculative_method", "eagle")
    assert (refused.state, refused.cure) == (State.REFUSED, "name a draft model that is made for it with --draft")
    assert value_of(found, "draft_tensor_parallel_size", 1).state is State.USABLE


def test_a_value_that_the_engine_replaces_says_by_what(installed: Installed) -> None:
    """On a single rank there are no experts to share."""
    found = value_of(checked("vllm", installed.vllm, model=installed.model, tp=1), "expert_parallel", True)
    assert (found.state, found.why) == (
        State.REPLACED,
        "runs False: a single rank holds every expert anyway",
    )


def test_an_engine_that_is_not_there_is_a_finding_and_no_error(installed: Installed) -> None:
    """With the remedy, and nothing about its parameters."""
    found = checked("vllm", installed.sglang)
    assert not found.is_usable
    assert found.parameters is None
    assert "has no vllm" in found.problem
    assert "pip install vllm" in found.problem


def test_a_gpu_node_without_its_software_says_what_to_install(tmp_path: Path) -> None:
    """Kernels are compiled on first use, with a compiler that containers often lack."""
    facts = {"gpu_count": 2, "nccl": None, "cuda": "13.0", "compiler": {"gcc": "12.2.0", "nvcc": None}}
    checks = {each.name: each for each in node_checks(facts, Home(tmp_path))}
    assert not checks["nvcc"].is_there
    assert "CUDA 13.0" in checks["nvcc"].cure
    assert not checks["NCCL"].is_there
    assert checks["ray"].is_there
    assert "NCCL" not in {each.name for each in node_checks({"gpu_count": 0}, Home(tmp_path))}


def test_a_home_that_cannot_be_written_is_needed(tmp_path: Path) -> None:
    """No study can be stored there."""
    (tmp_path / "file").touch()
    home = next(each for each in node_checks({}, Home(tmp_path / "file" / "home")) if each.name == "home")
    assert (home.is_there, home.is_needed) == (False, True)
    assert "--home" in home.cure


def test_py_spy_is_found_beside_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for there when a launch hangs."""
    monkeypatch.setenv("PATH", "")
    tool = tmp_path / "py-spy"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    found = next(each for each in node_checks({}, Home(tmp_path), [tmp_path]) if each.name == "py-spy")
    assert (found.is_there, found.found) == (True, str(tool))
    assert not next(each for each in node_checks({}, Home(tmp_path)) if each.name == "py-spy").is_there


def _missing(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


def _without_a_version(name: str) -> None:
    """What Python 3.11 gives for a folder of metadata without its file."""


@pytest.mark.parametrize("missing", [_missing, _without_a_version])
def test_a_package_without_metadata_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: Callable[[str], str | None]
) -> None:
    """One that was copied, and not installed, can be imported: only its version is not known."""
    monkeypatch.setattr(metadata, "version", missing)
    ray = next(each for each in node_checks({}, Home(tmp_path)) if each.name == "ray")
    assert (ray.is_there, ray.found) == (True, "version unknown")
