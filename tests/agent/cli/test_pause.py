"""`agent pause`, `agent status --watch` and `agent completion`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.command_line import SYNTHETIC, Search, agent, query, start_agent
from tests.support.waiting import wait_until

Invoke = Callable[..., Result]
SLOW = "tests.support.synthetic_engine:ProcessSyntheticEngine"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Search]:
    """A search at work, with at least one launch closed."""
    search = start_agent("search", *SYNTHETIC, "--engine", SLOW, "--budget", "500", home=tmp_path / "home")
    closed = "SELECT number FROM trials WHERE state = 'COMPLETE'"
    wait_until(lambda: query(search.home, closed) or search.process.poll() is not None, 90)
    yield search
    search.process.kill()
    search.process.communicate()


@pytest.mark.slow
def test_a_paused_search_finishes_what_runs_and_goes_on_later(running: Search) -> None:
    said = agent("pause", home=running.home)
    assert said.returncode == 0, said.stderr
    assert "finishes what is in flight" in said.stdout
    ended = running.ended
    assert ended.returncode == 0, ended.stderr
    assert ": paused" in ended.stdout
    states = {state for (state,) in query(running.home, "SELECT state FROM trials")}
    assert "FAIL" not in states, "something was cut off"
    more = agent("resume", "--time-budget", "1s", home=running.home)
    assert more.returncode == 0, more.stderr
    assert "the time budget is spent" in more.stdout


def test_a_study_that_nobody_runs_is_not_paused(finished: Path, invoke: Invoke) -> None:
    said = invoke("pause", "--home", str(finished))
    assert said.exit_code == 0
    assert "is not running" in said.stdout
    wish = "SELECT value_json FROM study_user_attributes WHERE key = 'paused'"
    assert ("true",) not in query(finished, wish)


def test_watching_a_finished_study_shows_it_once(finished: Path, invoke: Invoke) -> None:
    said = invoke("status", "--watch", "--home", str(finished))
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("synthetic") or ": done" in said.stdout


def test_watching_is_for_people(finished: Path, invoke: Invoke) -> None:
    assert invoke("status", "--watch", "--json", "--home", str(finished)).exit_code == 2


def test_bash_completes_commands(invoke: Invoke) -> None:
    script = invoke("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert "_AGENT_COMPLETE=bash_complete" in script
