"""How searches end, each in a process of its own: exit codes, what is left behind, and that a resume goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from runners.cookies import find_processes
from tests.agent.cli.conftest import BUDGET, with_wish
from tests.support.command_line import (
    ENGINE,
    SYNTHETIC,
    TIMEOUT_S,
    Search,
    agent,
    copied,
    execute,
    query,
    running_cookies,
    start_agent,
)
from tests.support.failing_engines import HOLD
from tests.support.waiting import wait_until

HOLDING = "tests.support.failing_engines:HoldingEngine"
LIBRARY_NOISE = ("alembic", "INFO", "WARNING", "Warning", "Traceback", "(raylet)", "database tables")
STATES = "SELECT state FROM trials JOIN studies USING (study_id) WHERE study_name NOT LIKE '%/probes' ORDER BY number"
DISK_FULL = """
CREATE TRIGGER full BEFORE INSERT ON trials WHEN (SELECT COUNT(*) FROM trials) >= {limit}
BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END
"""


def test_a_finished_search_prints_its_answer_and_no_noise_of_libraries(searches: dict[str, Search]) -> None:
    """Exit code 0, the answer on the screen, and nothing that Ray, Optuna or MLflow want to say."""
    ended = searches["finished"].ended
    assert ended.returncode == 0
    assert ended.stderr == ""
    assert "the budget is spent" in ended.stdout
    assert "repeat the best with:" in ended.stdout
    assert not [word for word in LIBRARY_NOISE if word in ended.stdout]


class Troubled:
    """A finished study with more budget and a wish, whose disk is full after one launch, and which then goes on."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.wish = with_wish(home)
        execute(home, DISK_FULL.format(limit=len(query(home, "SELECT number FROM trials")) + 1))
        self.stopped = agent("resume", "--budget", str(BUDGET + 3), home=home)
        execute(home, "DROP TRIGGER full")
        self.resumed = agent("resume", home=home)


@pytest.fixture(scope="module")
def troubled(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Troubled:
    """Run it once for all tests that look at it."""
    return Troubled(copied(finished, tmp_path_factory.mktemp("troubled") / "home"))


def launched(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of the launches, without those of probes."""
    return [line for line in ended.stdout.splitlines() if line.lstrip().startswith("#")]


def test_a_resume_launches_what_was_asked_for_first(troubled: Troubled, invoke: Callable[..., Result]) -> None:
    """The user's wish goes before anything the search would do."""
    point = json.loads(invoke("explain", f"#{BUDGET}", "--json", "--home", str(troubled.home)).stdout)["assignment"]
    wished = dict(word.split("=") for word in troubled.wish)
    assert {name: json.dumps(point[name]) for name in wished} == wished
    assert launched(troubled.stopped)[0].split()[0] == f"#{BUDGET}"


def test_storage_trouble_ends_with_5_and_says_how_to_go_on(troubled: Troubled) -> None:
    """A full disk stops the search cleanly, in one message."""
    assert troubled.stopped.returncode == 5, troubled.stopped.stderr
    assert "disk is full" in troubled.stopped.stderr
    assert "agent resume" in troubled.stopped.stderr
    assert "Traceback" not in troubled.stopped.stderr


def test_a_study_goes_on_after_storage_trouble_with_exactly_the_rest(troubled: Troubled) -> None:
    """Nothing is lost, nothing runs twice, and the new budget is spent to the last launch."""
    assert troubled.resumed.returncode == 0, troubled.resumed.stderr
    assert [line.split()[0] for line in launched(troubled.resumed)] == [f"#{BUDGET + 1}", f"#{BUDGET + 2}"]
    assert [state for (state,) in query(troubled.home, STATES)] == ["COMPLETE"] * (BUDGET + 3)


def test_a_budget_below_what_is_spent_is_refused(invoke: Callable[..., Result], finished: Path) -> None:
    """Launches cannot be taken back."""
    result = invoke("resume", "--budget", "3", "--home", str(finished))
    assert result.exit_code == 2
    assert f"--budget 3: {BUDGET} launches" in result.stderr


@pytest.mark.parametrize("words", [["--name", "SyntheticEngine"], ["--name", "SyntheticEngine", "--seed", "1"]])
def test_a_name_that_is_taken_is_refused(invoke: Callable[..., Result], finished: Path, words: list[str]) -> None:
    """Two studies never share a name; the message offers to go on with the one that is there."""
    result = invoke("search", "--engine", ENGINE, *SYNTHETIC, *words, "--home", str(finished))
    assert result.exit_code == 2
    assert "agent resume SyntheticEngine" in result.stderr


def test_a_name_of_a_study_of_another_space_is_refused(invoke: Callable[..., Result], finished: Path) -> None:
    """What was measured in one space says nothing about another one."""
    words = ("--name", "SyntheticEngine", "--exclude", "allreduce=nccl")
    result = invoke("search", "--engine", ENGINE, *SYNTHETIC, *words, "--home", str(finished))
    assert result.exit_code == 2
    assert "another search space" in result.stderr


def test_the_same_specification_is_not_begun_twice_while_it_is_open(
    invoke: Callable[..., Result], finished: Path, tmp_path: Path
) -> None:
    """A second `search` of what was cut off offers to resume it."""
    home = copied(finished, tmp_path / "home")
    with_wish(home)
    result = invoke("search", "--engine", ENGINE, *SYNTHETIC, "--home", str(home))
    assert result.exit_code == 2
    assert "agent resume SyntheticEngine" in result.stderr


def test_a_node_where_nothing_works_ends_with_3_and_the_reason(
    invoke: Callable[..., Result], searches: dict[str, Search]
) -> None:
    """Neither the default nor a safer setting works: the user learns why, and what cures it."""
    ended = searches["broken"].ended
    assert ended.returncode == 3, ended.stderr
    assert "gpu_oom" in ended.stdout
    assert "nothing was measured" in ended.stdout
    best = invoke("best", "--home", str(searches["broken"].home))
    assert best.exit_code == 3
    assert "has measured nothing yet" in best.stderr


def test_a_search_from_python_returns_how_it_ended(searches: dict[str, Search]) -> None:
    """`from agent import search` is `agent search`."""
    ended = searches["library"].ended
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == ["the budget is spent", False, 3]


def test_a_tracking_server_that_is_down_is_told_once_with_the_repair(searches: dict[str, Search]) -> None:
    """The search goes on without MLflow, and says what brings it up to date."""
    ended = searches["library"].ended
    said = ended.stdout + ended.stderr
    assert said.count("The search goes on") == 1
    assert "To repair: agent sync" in said


class Held:
    """A search whose first launch lasts as long as a file is there."""

    def __init__(self, folder: Path, content: str = "") -> None:
        self.hold = folder / "hold"
        folder.mkdir()
        self.hold.write_text(content, encoding="utf-8")
        words = ("search", "--engine", HOLDING, *SYNTHETIC, "--budget", "3", "--exclude", "allreduce=nccl")
        self.search = start_agent(*words, home=folder / "home", **{HOLD: str(self.hold)})
        self.home, self.process = self.search.home, self.search.process

    def wait_for_launch(self) -> str:
        """Return the cookie of the launch, once its processes run."""
        cookie = wait_until(lambda: next(iter(running_cookies(self.home)), ""), TIMEOUT_S)
        wait_until(lambda: len(find_processes(cookie)) >= 2, TIMEOUT_S)
        return cookie

    def interrupt(self, number: signal.Signals) -> str:
        """Send a signal while the launch runs, unless the search has ended already; return the launch's cookie."""
        if self.process.poll() is None:
            self.cookie = self.wait_for_launch()
            self.process.send_signal(number)
        return self.cookie


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Held]]:
    """Three of them, begun together: one for each way to end."""
    folder = tmp_path_factory.mktemp("held")
    started = {
        "SIGINT": Held(folder / "int"),
        "SIGTERM": Held(folder / "term"),
        "twice": Held(folder / "twice", content="stubborn"),
    }
    yield started
    for one in started.values():
        one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_first_signal_ends_cleanly_and_resumably(held: dict[str, Held], name: str) -> None:
    """Exit code 130, the launch closed as interrupted, none of its processes left, and how to go on."""
    cookie = held[name].interrupt(signal.Signals[name])
    ended = held[name].search.ended
    assert ended.returncode == 130, ended.stderr
    assert "agent resume HoldingEngine" in ended.stdout
    assert query(held[name].home, STATES) == [("FAIL",)]
    assert not find_processes(cookie)


def test_a_resume_after_an_interruption_spends_exactly_the_budget(held: dict[str, Held]) -> None:
    """An interrupted launch costs nothing: its work is done again, and the budget is met to the launch."""
    one = held["SIGINT"]
    one.interrupt(signal.SIGINT)
    assert one.search.ended.returncode == 130
    one.hold.unlink()
    assert agent("resume", home=one.home).returncode == 0
    assert query(one.home, STATES) == [("FAIL",), *[("COMPLETE",)] * 3]


def test_a_second_signal_leaves_at_once_and_the_watchdog_cleans_up(held: dict[str, Held]) -> None:
    """Even an engine that ignores SIGTERM does not outlive an agent in a hurry."""
    one = held["twice"]
    cookie = one.interrupt(signal.SIGINT)
    assert one.process.stdout is not None
    assert any("once more to leave at once" in line for line in one.process.stdout)
    one.process.send_signal(signal.SIGINT)
    ended = one.search.ended
    assert ended.returncode == 130
    assert "agent resume" in ended.stderr
    wait_until(lambda: not find_processes(cookie), TIMEOUT_S)
