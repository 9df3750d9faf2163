"""Phases, failures and effects, read out of the logs of real servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.classify import classify
from runners import Deadlines, Exit, LogLine, Phase, RunRecord, sglang_effects, vllm_effects
from runners.phases import PhaseTracker
from runners.sglang_runner import SglangRunner
from runners.vllm_runner import VllmRunner
from search_spaces import Assignment, Scalar

FOLDER = Path(__file__).with_name("recorded_logs")
INDEX: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "index.yaml").read_text(encoding="utf-8"))
PATTERNS = {"vllm": VllmRunner.phase_patterns, "sglang": SglangRunner.phase_patterns}
EFFECTS = {"vllm": vllm_effects.effects, "sglang": sglang_effects.effects}
every_log = pytest.mark.parametrize("name", INDEX)


def lines_of(name: str, *more: str) -> list[LogLine]:
    text = (FOLDER / f"{name}.log").read_text(encoding="utf-8")
    return [LogLine(number=number, text=line) for number, line in enumerate([*text.splitlines(), *more], start=1)]


def tracked(name: str, folder: Path) -> PhaseTracker:
    tracker = PhaseTracker(folder / "phases.jsonl", PATTERNS[name.split("-")[0]], Deadlines(), clock=lambda: 0.0)
    for line in lines_of(name):
        tracker.see(line)
    return tracker


def effective(name: str, assignment: Assignment, *more: str) -> dict[str, Scalar]:
    found = list(EFFECTS[name.split("-")[0]](assignment, lines_of(name, *more)))
    assert all(proof.requested == assignment[proof.parameter] and proof.evidence for proof in found)
    return {proof.parameter: proof.effective for proof in found}


def test_every_log_has_its_entry() -> None:
    assert {path.stem for path in FOLDER.glob("*.log")} == set(INDEX)
    assert all(entry["source"] for entry in INDEX.values())


@every_log
def test_the_phases_of_a_launch_are_read_from_its_log(name: str, tmp_path: Path) -> None:
    assert [phase.value for phase in tracked(name, tmp_path).phase_s] == INDEX[name]["phases"]


@pytest.mark.parametrize("name", [name for name, entry in INDEX.items() if "reason" in entry])
def test_a_failure_is_classified_by_its_root(name: str, tmp_path: Path) -> None:
    entry, phase = INDEX[name], tracked(name, tmp_path).phase
    log_path = str(FOLDER / f"{name}.log")
    failure = classify(RunRecord(exit=Exit(**entry["exit"]), phase=phase, wall_s=1.0, log_path=log_path)).failure
    assert failure is not None
    assert failure.reason.value == entry["reason"]


@pytest.mark.parametrize("name", ["vllm-sigterm_leader_clean", "sglang-nograph"])
def test_a_healthy_server_is_ready_only_when_it_served(name: str, tmp_path: Path) -> None:
    """No line of a log makes a server READY: that takes a completion, which the life cycle asks for."""
    assert tracked(name, tmp_path).phase is Phase.WARMUP


def test_what_vllm_was_told_is_proven_by_what_it_prints() -> None:
    asked = {"speculative_method": "ngram", "cuda_graph_max_bs": 0, "gpu_memory_utilization": 0.3, "allreduce": "auto"}
    found = effective("vllm-sigterm_leader_clean", {**asked, "num_speculative_tokens": 4, "max_num_seqs": 8})
    assert found == {"speculative_method": "none", "cuda_graph_max_bs": 0, "gpu_memory_utilization": 0.3}


@pytest.mark.parametrize(
    ("asked", "backends", "effective_value"),
    [
        ("custom", "['CUSTOM', 'PYNCCL']", "custom"),
        ("custom", "['PYNCCL']", "nccl"),
        ("torch_symm_mem", "['CUSTOM', 'SYMM_MEM', 'PYNCCL']", "custom"),
        ("flashinfer_mnnvl", "['FLASHINFER', 'PYNCCL']", "flashinfer_mnnvl"),
        ("nccl", "['PYNCCL']", "nccl"),
    ],
)
def test_vllm_runs_the_first_backend_of_its_list(asked: str, backends: str, effective_value: str) -> None:
    line = (
        f"(Worker_TP0 pid=7) INFO 11-29 16:31:53 [cuda_communicator.py:353] Using {backends} all-reduce backends "
        "(in dispatch order) for group 'tp:0' out of potential backends: ['NCCL_SYMM_MEM', 'CUSTOM', 'PYNCCL']"
    )
    assert effective("vllm-sigterm_leader_clean", {"allreduce": asked}, line) == {"allreduce": effective_value}


def test_vllm_s_graph_sizes_are_tokens_of_verify_passes() -> None:
    """Eight requests with three drafted tokens each are 32 tokens."""
    line = (
        "(EngineCore pid=7) INFO 11-29 16:31:46 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='/m', speculative_config=SpeculativeConfig(method='eagle3', model='/d', num_spec_tokens=3), "
        "enforce_eager=False, compilation_config={'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, "
        "'cudagraph_capture_sizes': [4, 8, 16, 32]}"
    )
    asked = {"cuda_graph_max_bs": 8, "num_speculative_tokens": 3, "speculative_method": "eagle3"}
    found = {proof.parameter: proof.effective for proof in vllm_effects.effects(asked, [LogLine(number=1, text=line)])}
    assert found == asked


def test_what_sglang_was_told_is_proven_by_what_it_prints() -> None:
    asked: Assignment = {
        "mem_fraction_static": 0.5,
        "max_running_requests": 16,
        "chunked_prefill_size": 2048,
        "cuda_graph_max_bs": 16,
        "prefill_cuda_graph": "disabled",
        "nccl_algo": "auto",
    }
    assert effective("sglang-nograph", asked) == {
        "mem_fraction_static": 0.5,
        "max_running_requests": 16,
        "chunked_prefill_size": 8192,
        "cuda_graph_max_bs": 0,
        "prefill_cuda_graph": "disabled",
    }


def sglang_effective(assignment: Assignment, *more: str) -> dict[str, Scalar]:
    arguments = (
        "[2026-11-29 16:55:49] server_args=ServerArgs(model_path='/m', speculative_algorithm=None, "
        "speculative_num_steps=3, ep_size=2, moe_a2a_backend='none', disable_custom_all_reduce=False, "
        "enable_torch_symm_mem=False, flashinfer_allreduce_fusion_backend='mnnvl')"
    )
    lines = [LogLine(number=number, text=text) for number, text in enumerate((arguments, *more), start=1)]
    return {proof.parameter: proof.effective for proof in sglang_effects.effects(assignment, lines)}


def test_sglang_s_resolved_arguments_are_what_ran() -> None:
    asked = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "ep_size": 1, "moe_a2a_backend": "none"}
    expected = {"speculative_algorithm": "none", "speculative_num_steps": 3, "ep_size": 2, "moe_a2a_backend": "none"}
    assert sglang_effective(asked) == expected


def test_what_sglang_s_server_says_of_itself_goes_before_its_log() -> None:
    """It is later than the line at the start, and the fallback of a backend is seen in the log alone."""
    log = "server_args=ServerArgs(ep_size=1, moe_a2a_backend='deepep', disable_custom_all_reduce=False)"
    lines = [LogLine(number=1, text=log)]
    info: dict[str, Scalar] = {"ep_size": 8, "speculative_algorithm": "none", "disable_custom_all_reduce": True}
    asked = {"ep_size": 1, "moe_a2a_backend": "deepep", "speculative_algorithm": "EAGLE3", "allreduce": "custom"}
    found = {proof.parameter: proof for proof in sglang_effects.effects(asked, lines, info)}
    assert {name: proof.effective for name, proof in found.items()} == {
        "ep_size": 8,
        "moe_a2a_backend": "deepep",
        "speculative_algorithm": "none",
        "allreduce": "nccl",
    }
    assert found["ep_size"].evidence == "/server_info says ep_size=8"
    assert found["moe_a2a_backend"].evidence.startswith("line 1: ")


def test_sglang_s_captured_sizes_are_read_from_the_capture() -> None:
    assert effective("sglang-tree", {"cuda_graph_max_bs": 16}) == {"cuda_graph_max_bs": 16}


def test_a_backend_that_sglang_could_not_set_up_ran_as_nccl() -> None:
    line = "[2026-11-29 16:55:50 TP0] Setup Custom allreduce failed with [Errno 12] odd. To silence this warning, …"
    assert sglang_effective({"allreduce": "custom"}, line) == {"allreduce": "nccl"}
    assert sglang_effective({"allreduce": "custom"}) == {"allreduce": "custom"}
    assert sglang_effective({"allreduce": "torch_symm_mem"}) == {"allreduce": "nccl"}
    assert sglang_effective({"allreduce": "flashinfer_fusion_mnnvl"}) == {"allreduce": "flashinfer_fusion_mnnvl"}


def test_what_nccl_was_told_is_proven_by_what_it_says() -> None:
    lines = (
        "node-a:4411:4492 [0] NCCL INFO NCCL_ALGO set by environment to allreduce:tree",
        "node-a:4411:4492 [0] NCCL INFO NCCL_MAX_CTAS set by environment to 8.",
    )
    asked: Assignment = {"nccl_algo": "allreduce:tree", "nccl_max_ctas": 16, "nccl_proto": "^LL128"}
    expected = {"nccl_algo": "allreduce:tree", "nccl_max_ctas": 8}
    assert sglang_effective(asked, *lines) == expected
    assert effective("vllm-sigterm_leader_clean", asked, *lines) == expected
