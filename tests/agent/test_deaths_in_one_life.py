"""One agent under whose feet one process after the other dies: it goes on, whoever its parent is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.processes import ProcessKey, is_running, read_stat
from tests.support import victims
from tests.support.command_line import SYNTHETIC, environment, running_cookies
from tests.support.failing_engines import HOLD
from tests.support.study_checks import problems_of
from tests.support.waiting import wait_until

START_S, END_S = 120.0, 240.0
BUDGET = 3
STRUCK = (("watchdog", "gcs"), ("ray helper", "raylet"), ("worker", "gcs"))
"""What is killed while each of the launches runs, one right after the other."""
FORSAKEN = """
import subprocess, sys
with open(sys.argv[1], "wb") as output:
    print(subprocess.Popen(sys.argv[2:], stdout=output, stderr=output, start_new_session=True).pid)
"""
"""Starts a program and leaves it to init, as a shell does that ends before what it started with nohup."""


def begun(folder: Path) -> ProcessKey:
    """Start a search whose launches last while a file is there and whose parent is gone."""
    words = ("search", "--engine", "tests.support.failing_engines:HoldingEngine", *SYNTHETIC, "--budget", str(BUDGET))
    command = [sys.executable, "-m", "agent", *words, "--exclude", "allreduce=nccl", "--home", str(folder / "home")]
    asked = [sys.executable, "-c", FORSAKEN, str(folder / "output.txt"), *command]
    variables = environment(**{HOLD: str(folder / "hold")})
    pid = int(subprocess.run(asked, env=variables, capture_output=True, text=True, check=True).stdout)
    stat = read_stat(pid)
    assert stat is not None
    return stat.key


@pytest.mark.slow
def test_an_agent_outlives_whatever_it_started_in_one_life(tmp_path: Path) -> None:
    """Its watchdog, its Ray twice over, its worker: the work is queued again, and the study ends as if undisturbed."""
    hold, home = tmp_path / "hold", tmp_path / "home"
    hold.touch()
    agent, seen = begun(tmp_path), set[str]()

    def launch() -> str:
        assert is_running(agent), (tmp_path / "output.txt").read_text(encoding="utf-8")[-2000:]
        there = victims.by_kind(agent.pid)
        is_up = {"engine", "worker", "gcs", "raylet"} <= there.keys()
        return next((cookie for cookie in running_cookies(home) if cookie not in seen), "") if is_up else ""

    try:
        for kinds in STRUCK:
            seen.add(wait_until(launch, START_S))
            for kind in kinds:
                os.kill(victims.by_kind(agent.pid)[kind][0].pid, 9)
        wait_until(launch, START_S)
        hold.unlink()
        wait_until(lambda: not is_running(agent), END_S)
    finally:
        victims.kill_all([agent, *(stat.key for stat in victims.descendants(agent.pid))])
    assert "the budget is spent" in (tmp_path / "output.txt").read_text(encoding="utf-8")
    assert problems_of(home, BUDGET) == []
