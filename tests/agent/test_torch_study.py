"""A real study of the real torch engine on this machine, and what its map says."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import URLError

import pytest

from runners.ports import free_port
from tests.support.bare_torch import expected_dead_ends
from tests.support.command_line import copied
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
BUDGET = 12
AGENT = (sys.executable, "-m", "agent")

pytestmark = pytest.mark.slow


def _agent(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*AGENT, *arguments, "--home", str(home)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study with the engine's smallest preset."""
    home = tmp_path_factory.mktemp("torch") / "home"
    _agent(home, "search", "--budget", str(BUDGET), "--option", "preset=tiny")
    return home


def _reading(home: Path, command: str) -> object:
    return json.loads(_agent(home, command, "--json").stdout)


def test_the_budget_is_used_exactly_and_most_launches_are_measured(home: Path) -> None:
    """Failures belong on the map, found by probes; launches are for measuring."""
    status = _reading(home, "status")
    assert isinstance(status, dict)
    assert status["spent"] == BUDGET
    assert status["outcomes"]["measured"] >= BUDGET / 2


@pytest.mark.skipif("sys.platform != 'linux'")
def test_the_dead_ends_are_exactly_what_bare_torch_cannot_do_here(home: Path) -> None:
    """The map is true: nothing on it works in bare torch, and nothing that bare torch cannot do is missing."""
    found = _reading(home, "deadends")
    assert isinstance(found, list)
    conditions = {
        " ∧ ".join(f"{c['parameter']} {c['comparison']} {str(c['value']).lower()}" for c in dead_end["conditions"])
        for dead_end in found
        if dead_end["state"] == "confirmed"
    }
    assert conditions == expected_dead_ends()


def test_the_best_command_repeats_the_best_trial(home: Path, tmp_path: Path) -> None:
    """What is printed as the way to repeat the best is a command that works as it stands."""
    best = _reading(home, "best")
    assert isinstance(best, dict)
    result = tmp_path / "result.json"
    subprocess.run([*best["command"].split(), "--result", str(result)], cwd=tmp_path, check=True, capture_output=True)
    assert json.loads(result.read_text())["resolved"]["allreduce"] == best["assignment"]["allreduce"]


def test_the_newcomers_path_leads_from_a_result_to_a_started_engine(home: Path, tmp_path: Path) -> None:
    """Search → result → resume with more budget → MLflow's view → export → the exported script starts the engine."""
    taken = copied(home, tmp_path / "home")
    assert (
        f"{BUDGET + 1} of {BUDGET + 1} launches closed" in _agent(taken, "resume", "--budget", str(BUDGET + 1)).stdout
    )
    port = free_port()
    with subprocess.Popen([*AGENT, "ui", "--port", str(port), "--home", str(taken)], cwd=ROOT) as view:
        try:
            wait_until(lambda: b"MLflow" in fetched(f"http://127.0.0.1:{port}/"), 180)
        finally:
            view.terminate()
    script, result = tmp_path / "serve.sh", tmp_path / "result.json"
    script.write_text(_agent(taken, "best", "--export", "sh").stdout, encoding="utf-8")
    subprocess.run(["/bin/sh", str(script), "--result", str(result)], cwd=tmp_path, check=True, capture_output=True)
    best = _reading(taken, "best")
    assert isinstance(best, dict)
    assert json.loads(result.read_text())["resolved"]["allreduce"] == best["assignment"]["allreduce"]


def fetched(address: str) -> bytes:
    """Return a page, empty while nobody serves it."""
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 (loopback)
            content: bytes = answer.read()
            return content
    except URLError:
        return b""
