"""Ranks that are forked ahead of their turn: they say when they are set up, and wait for a word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
LIVE = """
import json, sys
from pathlib import Path
from runners.torch_engine.probe_plan import ProbePlan
from runners.torch_engine.probe_ranks import ProbeRanks
levels = [[{"op": "all_reduce", "numel": 64, "count": 1}]]
chain = ["sglang.custom_v2", "gloo"]
graphs = {"has_graphs": False, "is_graph_served": False}
plan = ProbePlan.of_json({"device": "cpu", "tp": 2, "chain": chain, "levels": levels, "width": 64, **graphs})
ranks = ProbeRanks(plan, {}, Path(sys.argv[1]))
try:
    print("ready", ranks.are_ready, flush=True)
    Path(sys.argv[2]).write_text("go on")
    while not ranks.are_ready:
        pass
    print("ready", ranks.are_ready, flush=True)
    exits, answer = ranks.run(60)
    print("ended", [each.exit_code for each in exits], bool(answer), flush=True)
finally:
    ranks.end()
"""


WAIT = "import pathlib\nwhile not pathlib.Path({!r}).exists():\n    pass\n"
COMMUNICATOR = """
class CustomAllReduceV2:
    def __init__(self, group, device):
        {}
    def should_custom_ar(self, tensor):
        return False
    def custom_all_reduce(self, tensor):
        raise AssertionError
"""
PACKAGES = {
    "waits in its import": WAIT,
    "dies in its import": WAIT + "import os\nos._exit(3)\n",
    "waits as it is set up": COMMUNICATOR.format("exec({!r})"),
    "dies as it is set up": COMMUNICATOR.format("exec({!r}); __import__('os')._exit(3)"),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_ranks_are_ready_once_they_are_set_up_or_gone(tmp_path: Path, package: str) -> None:
    go_on = tmp_path / "go-on"
    folder = tmp_path / "site" / "sglang" / "srt" / "distributed" / "device_communicators"
    folder.mkdir(parents=True)
    text = PACKAGES[package]
    wait = str(go_on) if text.startswith(WAIT) else WAIT.format(str(go_on))
    (folder / "custom_all_reduce_v2.py").write_text(text.format(wait))
    for parent in folder.relative_to(tmp_path / "site").parents[:-1]:
        (tmp_path / "site" / parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder.parent / "parallel_state.py").write_text("def init_distributed_environment(**_): pass\n")
    done = subprocess.run(
        [sys.executable, "-c", LIVE, str(tmp_path / "log"), str(go_on)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{REPOSITORY}:{tmp_path / 'site'}", "PATH": ""},
        timeout=120,
        check=False,
    )
    before, after, ended = done.stdout.splitlines() or pytest.fail(done.stderr)
    assert (before, after) == ("ready False", "ready True")
    if package.startswith("dies"):
        assert re.fullmatch(r"ended \[[13](, -?\d+)*\] False", ended)
        assert "phase=" + ("spawn" if "import" in package else "compile") in (tmp_path / "log").read_text()
    else:
        assert ended == "ended [0, 0] True"
