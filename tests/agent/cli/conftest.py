"""One finished study for all tests that only read, and the command line inside this process where no Ray is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.cli.main import main
from tests.support.command_line import ENGINE, SYNTHETIC, Search, start_agent, start_python

BUDGET = 12
AS_A_LIBRARY = f"""
import json, sys
from agent import search
from agent.found import Found
found = search(home=sys.argv[1], engine="{ENGINE}", space="torch", device="cpu", budget=3)
assert isinstance(found, Found)
assert found.best and found.command and found.verdict in found._repr_html_()
print(json.dumps([found.why, found.ended.is_mirrored, len(found.trials)]))
"""
BROKEN = "tests.support.failing_engines:BrokenEngine"


@pytest.fixture(scope="session")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Search]]:
    """Whole searches, begun together, since each mostly waits for its Ray."""
    folder = tmp_path_factory.mktemp("searches")
    words = ("search", *SYNTHETIC, "--engine")
    started = {
        "finished": start_agent(*words, ENGINE, "--budget", str(BUDGET), home=folder / "finished"),
        "broken": start_agent(*words, BROKEN, "--budget", "20", home=folder / "broken"),
        "library": start_python(AS_A_LIBRARY, folder / "library", MLFLOW_TRACKING_URI="http://127.0.0.1:1"),
    }
    yield started
    for search in started.values():
        search.process.kill()
        search.process.communicate()


@pytest.fixture(scope="session")
def finished(searches: dict[str, Search]) -> Path:
    """The home of a finished study. Tests that change it take a copy."""
    ended = searches["finished"].ended
    assert ended.returncode == 0, ended.stderr
    return searches["finished"].home


def with_wish(home: Path, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Queue a launch that the study has not made, whichever those are, and return its words; not those given."""
    for length in range(9):
        for expert in ("true", "false"):
            words = (f"draft_length={length}", f"expert_parallel={expert}")
            if words != without and CliRunner().invoke(main, ["try", *words, "--home", str(home)]).exit_code == 0:
                return words
    raise AssertionError(f"all of 18 assignments are closed after {BUDGET} launches")


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command in this process."""
    for name in ("AGENT_HOME", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words, stdin=None: CliRunner().invoke(main, list(words), input=stdin)
