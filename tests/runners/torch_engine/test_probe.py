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
