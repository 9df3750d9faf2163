"""The probe server: one result line for every request, whatever the backend did, and nothing shared between probes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from runners.torch_engine.config import ConfigError
from runners.torch_engine.probe_plan import ProbePlan
from runners.torch_engine.probe_rank import needs_the_engine

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


def standalone(tmp_path: Path, requests: list[dict[str, Any]], site: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Answer the requests with the server that is started as a plain file, from a folder with misleading names."""
    done = run_standalone(tmp_path, requests, site, *options)
    assert done.returncode == 0, done.stderr
    answers = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    return {answer["id"]: answer for answer in answers}


def run_standalone(
    tmp_path: Path, requests: list[dict[str, Any]], site: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run that server to its end."""
    (tmp_path / "config.py").write_text("raise ImportError('not this one')\n")
    lines = [json.dumps({"log": str(tmp_path / f"{request['id']}.log")} | request) for request in requests]
    (tmp_path / "requests.jsonl").write_text("\n".join(lines) + "\n")
    program = REPOSITORY / "runners" / "torch_engine" / "standalone.py"
    files = ["--requests", str(tmp_path / "requests.jsonl"), "--results", str(tmp_path / "results.jsonl")]
    return subprocess.run(
        [sys.executable, str(program), *files, *options],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site)},
        cwd=tmp_path,
        timeout=120,
        check=False,
    )


def find_with(word: str) -> list[int]:
    """Return the processes whose command line holds a word."""
    return [each.pid for each in psutil.process_iter() if word in _words_of(each)]


def _words_of(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:  # gone meanwhile
        return []


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


@pytest.mark.parametrize(
    ("words", "is_of_the_engine"),
    [
        ("world group is not initialized", True),
        ("Global server args is not set yet!", True),  # SGLang 0.5.16, symmetric memory
        ("no peer access", False),
        ("the sum is not set right", False),
    ],
)
def test_what_an_engine_makes_before_is_told_from_what_fails(words: str, is_of_the_engine: bool) -> None:
    assert needs_the_engine(ValueError(words)) is is_of_the_engine


@pytest.mark.parametrize("ahead", [0, 2])
def test_each_rank_imports_the_engine_for_itself_if_need_be_ahead_of_its_turn(tmp_path: Path, ahead: int) -> None:
    """A process that imported an engine has touched CUDA, and cannot fork ranks that use it."""
    site = tmp_path / "site"
    add_communicator(site, "custom_all_reduce_v2", "CustomAllReduceV2")
    path = site / "sglang" / "srt" / "distributed" / "device_communicators" / "custom_all_reduce_v2.py"
    says = "import os\nos.write(1, f'imported by {os.getpid()} {os.environ.get(\"OF\")}\\n'.encode())\n"  # in one piece
    path.write_text(says + path.read_text())
    own = [{"id": f"own{n}", "plan": plan("sglang.custom_v2", "gloo"), "env": {"OF": f"probe {n}"}} for n in range(3)]
    answers = standalone(tmp_path, [*own, {"id": "bare", "plan": plan("gloo")}], site, "--ahead", str(ahead))
    assert set(answers) == {"bare", "own0", "own1", "own2"}
    assert ahead or next(iter(answers)) == "bare"
    assert answers["bare"]["ok"] and "imported" not in (tmp_path / "bare.log").read_text()
    for number in range(3):
        assert answers[f"own{number}"]["collective"] == "sglang.custom_v2"
        importing = [line for line in (tmp_path / f"own{number}.log").read_text().splitlines() if "imported by" in line]
        assert len(set(importing)) == 2 and all(line.endswith(f"probe {number}") for line in importing)


def test_what_began_ahead_is_ended_with_the_server(tmp_path: Path) -> None:
    """A probe whose ranks wait for their turn when the server is stopped: none of them is left."""
    site = tmp_path / "site"
    add_communicator(site, "custom_all_reduce_v2", "CustomAllReduceV2")
    path = site / "sglang" / "srt" / "distributed" / "device_communicators" / "custom_all_reduce_v2.py"
    stop = "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\nsignal.pause()\n"
    path.write_text(stop + path.read_text())
    slow = {"id": "slow", "argv": engine_flags(), "timeout_s": 60}
    requests = [slow, {"id": "own", "plan": plan("sglang.custom_v2", "gloo"), "timeout_s": 60}]
    done = run_standalone(tmp_path, requests, site, "--ahead", "1")
    assert done.returncode == 128 + signal.SIGTERM
    assert not find_with(str(tmp_path / "results.jsonl"))


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
