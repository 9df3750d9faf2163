"""The probe server: one result line for every request, whatever the backend did, and nothing shared between probes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from runners.torch_engine.config import ConfigError
from runners.torch_engine.probe_plan import ProbePlan

REPOSITORY = Path(__file__).parents[3]
KEYS = [
    "id",
    "ok",
    "calls",
    "calls_per_pass",
    "pass_us",
    "max_relative_error",
    "collective",
    "replaced",
    "software",
    "not_probed",
    "phase",
    "exit_code",
    "signal",
    "timed_out",
    "error",
    "seconds",
]


def serve(tmp_path: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer the requests with one server and return its result lines."""
    lines = [json.dumps({"log": str(tmp_path / f"{request['id']}.log")} | request) for request in requests]
    (tmp_path / "requests.jsonl").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "runners.torch_engine.probe"]
    files = ["--requests", str(tmp_path / "requests.jsonl"), "--results", str(tmp_path / "results.jsonl")]
    done = subprocess.run(
        [*command, *files],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]


def engine_flags(*flags: str) -> list[str]:
    return ["--preset", "tiny", "--device", "cpu", *flags]


@pytest.mark.skipif(torch.version.cuda is not None, reason="expects the failures of a CPU-only torch")
def test_every_request_gets_a_line_and_a_failure_does_not_reach_the_next(tmp_path: Path) -> None:
    """Passes, a backend that is not there, bad flags, a hang: one server answers them all."""
    passed, missing, bad, hung, experts = serve(
        tmp_path,
        [
            {"id": "passed", "argv": engine_flags("--allreduce", "gloo", "--draft-length", "1")},
            {"id": "missing", "argv": engine_flags("--allreduce", "nccl")},
            {"id": "bad", "argv": engine_flags("--draft-length", "9")},
            {"id": "hung", "argv": engine_flags(), "timeout_s": 0.001},
            {"id": "experts", "argv": engine_flags("--expert-parallel", "on"), "env": {"GLOO_SOCKET_IFNAME": "lo"}},
        ],
    )
    assert list(passed) == KEYS
    assert passed["ok"] and passed["exit_code"] == 0 and passed["error"] is None
    assert [(call["op"], call["bytes"], call["mode"]) for call in passed["calls"]] == [
        ("all_reduce", 2 * 128 * 4, "eager"),
        ("all_reduce", 8 * 128 * 4, "eager"),
    ]
    assert passed["calls_per_pass"] == 6
    assert passed["pass_us"] == pytest.approx(6 * passed["calls"][0]["us_p50"])
    assert passed["max_relative_error"] < 1e-5

    assert not missing["ok"] and missing["exit_code"] == 1 and missing["phase"] == "init_distributed"
    assert "doesn't have NCCL built in" in missing["error"]
    assert (
        not bad["ok"]
        and bad["exit_code"] == 2
        and bad["error"] == "error: draft_length=9: choose 0 (no speculation) to 8"
    )
    assert not hung["ok"] and hung["timed_out"] and hung["exit_code"] is None
    assert experts["ok"] and {call["op"] for call in experts["calls"]} == {"all_reduce", "all_to_all", "all_gather"}


def test_environment_of_one_probe_does_not_leak_into_the_next(tmp_path: Path) -> None:
    """An interface that does not exist breaks the probe that names it, and only that one."""
    broken, sound = serve(
        tmp_path,
        [
            {"id": "broken", "argv": engine_flags(), "env": {"GLOO_SOCKET_IFNAME": "no-such-interface"}},
            {"id": "sound", "argv": engine_flags()},
        ],
    )
    assert not broken["ok"] and "no-such-interface" in broken["error"]
    assert sound["ok"]


def test_a_rank_that_hangs_is_killed_at_the_time_limit(tmp_path: Path) -> None:
    """A rank that ignores SIGTERM and never ends costs the time limit and the grace, no more, and is reaped."""
    code = """
import os, signal, sys, time
from runners.torch_engine.launcher import run_ranks
def hang(rank):
    if rank == 1:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
started = time.monotonic()
assert run_ranks(2, hang, timeout_s=0.1) is None
assert time.monotonic() - started < 5
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    sys.exit(0)
sys.exit("a rank was left")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, cwd=REPOSITORY, check=False
    )
    assert done.returncode == 0, done.stderr


def test_one_probe_alone_prints_its_result(tmp_path: Path) -> None:
    """For a person at a shell."""
    command = [
        sys.executable,
        "-m",
        "runners.torch_engine.probe",
        "--log",
        str(tmp_path / "log"),
        "--",
        *engine_flags(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=REPOSITORY, check=False)
    assert json.loads(done.stdout)["ok"], done.stderr


COMMUNICATOR = """
import torch.distributed as dist

class {name}:
    def __init__(self, group, device{more}):
        assert dist.get_backend(group) == "gloo"
        self.group, self.disabled = group, {disabled}
        {body}

    def should_custom_ar(self, rows):
        return rows.shape[0] <= 4

    def custom_all_reduce(self, rows):
        out = rows.clone()
        dist.all_reduce(out, group=self.group)
        return out
"""


PARALLEL_STATE = """
_WORLD = None

def init_distributed_environment(world_size, rank, local_rank, backend):
    global _WORLD
    _WORLD = (world_size, local_rank, backend)
"""


def add_communicator(
    site: Path, module: str, name: str, *, disabled: bool = False, more: str = "", body: str = "pass"
) -> None:
    """Let SGLang seem to be installed, with a communicator that sums with gloo and the engine's world group."""
    folder = site / "sglang" / "srt" / "distributed" / "device_communicators"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "parallel_state.py").write_text(PARALLEL_STATE)
    text = COMMUNICATOR.format(name=name, disabled=disabled, more=more, body=body)
    (folder / f"{module}.py").write_text(text)


def standalone(tmp_path: Path, requests: list[dict[str, Any]], site: Path) -> dict[str, dict[str, Any]]:
    """Answer the requests with the server that is started as a plain file, from a folder with misleading names."""
    (tmp_path / "config.py").write_text("raise ImportError('not this one')\n")
    lines = [json.dumps({"log": str(tmp_path / f"{request['id']}.log")} | request) for request in requests]
    (tmp_path / "requests.jsonl").write_text("\n".join(lines) + "\n")
    program = REPOSITORY / "runners" / "torch_engine" / "standalone.py"
    files = ["--requests", str(tmp_path / "requests.jsonl"), "--results", str(tmp_path / "results.jsonl")]
    done = subprocess.run(
        [sys.executable, str(program), *files],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site)},
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    return {answer["id"]: answer for answer in answers}


def plan(*chain: str, rows: tuple[int, ...] = (1, 8)) -> dict[str, Any]:
    """Return a plan of one sum a level."""
    levels = [[{"op": "all_reduce", "numel": 64 * each, "count": 10}] for each in rows]
    common = {"device": "cpu", "tp": 2, "has_graphs": False, "is_graph_served": False, "width": 64}
    return {**common, "chain": list(chain), "levels": levels}


def test_all_reduces_of_an_engine_s_package_are_called_as_the_engine_does(tmp_path: Path) -> None:
    """One works and leaves large messages to others; one switches itself off; one raises, which the engine swallows."""
    site = tmp_path / "site"
    add_communicator(site, "custom_all_reduce_v2", "CustomAllReduceV2")
    add_communicator(site, "custom_all_reduce", "CustomAllreduce", disabled=True)
    answers = standalone(
        tmp_path,
        [
            {"id": "works", "plan": plan("sglang.custom_v2", "gloo")},
            {"id": "off", "plan": plan("sglang.custom", "gloo")},
            {"id": "bare", "plan": plan("gloo")},
            {"id": "absent", "plan": plan("vllm.custom", "gloo")},
        ],
        site,
    )
    assert next(iter(answers)) == "bare"  # those of packages come last
    works, off, absent = answers["works"], answers["off"], answers["absent"]
    assert works["collective"] == "sglang.custom_v2" and works["max_relative_error"] < 1e-5
    assert [call["by"].split()[0] for call in works["calls"]] == ["CustomAllReduceV2", "gloo"]
    assert works["pass_us"] == pytest.approx(10 * works["calls"][0]["us_p50"])
    assert (off["ok"], off["collective"], off["calls"][0]["by"]) == (True, "gloo", "gloo")
    assert "switches itself off" in off["replaced"][0]
    assert not absent["ok"] and absent["exit_code"] == 0
    assert "vllm" in absent["not_probed"] and "cannot be imported" in absent["not_probed"]


def test_a_communicator_that_raises_is_a_failure_only_where_the_engine_lets_it(tmp_path: Path) -> None:
    site = tmp_path / "site"
    add_communicator(site, "custom_all_reduce_v2", "CustomAllReduceV2", body="raise RuntimeError('no peer access')")
    add_communicator(site, "torch_symm_mem", "TorchSymmMemCommunicator", body="raise KeyError(12)")
    missing = "raise AssertionError('world group is not initialized')"
    add_communicator(site, "custom_all_reduce", "CustomAllreduce", body=missing)
    text = (site / "sglang/srt/distributed/device_communicators/torch_symm_mem.py").read_text()
    renamed = text.replace("should_custom_ar", "should_torch_symm_mem_allreduce").replace(
        "custom_all_reduce", "all_reduce"
    )
    (site / "sglang/srt/distributed/device_communicators/torch_symm_mem.py").write_text(renamed)
    answers = standalone(
        tmp_path,
        [
            {"id": "swallowed", "plan": plan("sglang.custom_v2", "gloo")},
            {"id": "raised", "plan": plan("sglang.torch_symm_mem", "gloo")},
            {"id": "alone", "plan": plan("sglang.custom", "gloo")},
        ],
        site,
    )
    assert "wants to be set up by its engine" in answers["alone"]["not_probed"]
    assert answers["swallowed"]["ok"] and "no peer access" in answers["swallowed"]["replaced"][0]
    assert not answers["raised"]["ok"] and "KeyError: 12" in answers["raised"]["error"]


def test_the_engine_s_world_group_is_there_before_its_communicators(tmp_path: Path) -> None:
    """They ask for it (SGLang 0.5.16: which GPUs reach each other); an engine that makes it otherwise is not probed."""
    site = tmp_path / "site"
    asked = "from sglang.srt.distributed import parallel_state; assert parallel_state._WORLD == (2, rank, 'gloo')"
    add_communicator(site, "custom_all_reduce", "CustomAllreduce", body=f"rank = dist.get_rank(); {asked}")
    request = {"id": "asks", "plan": plan("sglang.custom", "gloo")}
    answer = standalone(tmp_path, [request], site)["asks"]
    assert answer["ok"] and answer["collective"] == "sglang.custom" and not answer["replaced"]

    state = site / "sglang" / "srt" / "distributed" / "parallel_state.py"
    state.write_text("def init_distributed_environment(settings): raise AssertionError\n")
    (tmp_path / "results.jsonl").unlink()
    answer = standalone(tmp_path, [request], site)["asks"]
    assert not answer["ok"] and "world group of sglang" in answer["not_probed"] and "TypeError" in answer["not_probed"]


def test_an_import_that_touches_cuda_is_left_to_the_ranks(tmp_path: Path) -> None:
    """A process that touched CUDA cannot fork ranks that use it: the server starts anew and goes on where it was."""
    site = tmp_path / "site"
    add_communicator(site, "custom_all_reduce_v2", "CustomAllReduceV2")
    path = site / "sglang" / "srt" / "distributed" / "device_communicators" / "custom_all_reduce_v2.py"
    touch = "import os, torch\ntorch.cuda.is_initialized = lambda: True\nprint('imported by', os.getpid())\n"
    path.write_text(touch + path.read_text())
    requests = [{"id": "bare", "plan": plan("gloo")}, {"id": "own", "plan": plan("sglang.custom_v2", "gloo")}]
    answers = standalone(tmp_path, requests, site)
    assert list(answers) == ["bare", "own"]
    assert answers["bare"]["ok"] and answers["own"]["collective"] == "sglang.custom_v2"
    assert (tmp_path / "own.log").read_text().count("imported by") == 2  # once in each rank


def test_a_communicator_that_is_built_otherwise_is_not_probed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    add_communicator(site, "custom_all_reduce_v2", "CustomAllReduceV2", more=", workspace")
    answer = standalone(tmp_path, [{"id": "other", "plan": plan("sglang.custom_v2", "gloo")}], site)["other"]
    assert "workspace" in answer["not_probed"] and not answer["ok"]


def test_what_is_answered_already_is_not_probed_again(tmp_path: Path) -> None:
    """A server that had to start anew goes on where it was."""
    (tmp_path / "results.jsonl").write_text('{"id": "first"}\n')
    requests = [{"id": "first", "plan": plan("gloo")}, {"id": "second", "plan": plan("gloo", rows=(1,))}]
    lines = [json.dumps({"log": str(tmp_path / "log"), **request}) for request in requests]
    (tmp_path / "requests.jsonl").write_text("\n".join(lines) + "\n")
    code = (
        "import sys; from pathlib import Path; from runners.torch_engine.probe import serve_probes; "
        "serve_probes(open(sys.argv[1]), Path(sys.argv[2]))"
    )
    files = [str(tmp_path / "requests.jsonl"), str(tmp_path / "results.jsonl")]
    subprocess.run([sys.executable, "-c", code, *files], check=True, cwd=REPOSITORY, timeout=60)
    answered = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert [answer["id"] for answer in answered] == ["first", "second"]


@pytest.mark.parametrize(
    "broken",
    [
        {"chain": ["nonsense"]},
        {"chain": []},
        {"levels": []},
        {"levels": [[{"op": "broadcast", "numel": 1, "count": 1}]]},
        {"levels": [[{"op": "all_reduce", "numel": 0, "count": 1}]]},
        {"more": 1},
    ],
)
def test_a_plan_that_describes_nothing_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        ProbePlan.of_json(plan("gloo") | broken)


def test_sizes_replace_the_messages_of_the_flags(tmp_path: Path) -> None:
    (answer,) = serve(tmp_path, [{"id": "sized", "argv": engine_flags(), "sizes": [4096, 8192]}])
    assert [call["bytes"] for call in answer["calls"]] == [4096, 8192]
    assert answer["calls_per_pass"] == 6
