"""Commands that read a finished study: what they print, what their JSON holds, and that they change nothing."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import agent.cli as command_line_package
from tests.agent.cli.conftest import BUDGET, with_wish
from tests.support.command_line import ENGINE, SYNTHETIC, copied, environment, query

Invoke = Callable[..., Result]
ONLY_GLOO_GRAPHS = "allreduce = gloo ∧ cuda_graph_max_bs ≥ 1"


def printed(result: Result) -> str:
    """Return what a command printed, having ended well and without a word on stderr."""
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def test_status_says_that_the_study_is_done(invoke: Invoke, finished: Path) -> None:
    """The first line answers the question; no remedy is offered where none is needed."""
    text = printed(invoke("status", "--home", str(finished)))
    assert text.splitlines()[0] == "SyntheticEngine: done"
    assert f"{BUDGET} of {BUDGET} launches closed" in text
    assert "agent resume" not in text


def test_status_as_json_has_the_documented_keys(invoke: Invoke, finished: Path) -> None:
    """Programs rely on the keys: they change only together with the page that lists them."""
    content = json.loads(printed(invoke("status", "--home", str(finished), "--json")))
    assert content["spent"] == content["budget"] == BUDGET
    assert content["owner"] is None
    assert content["running"] == []
    assert documented("status", content)


def test_best_names_the_gain_and_the_command(invoke: Invoke, finished: Path) -> None:
    """The answer of a study: what to set, what it brings, how to run it."""
    text = printed(invoke("best", "--home", str(finished)))
    assert text.startswith("best: ")
    assert "× the baseline" in text
    assert "repeat it with:" in text


def test_best_as_json_agrees_with_itself(invoke: Invoke, finished: Path) -> None:
    """The gain is that of the repeats, which on this engine are all alike, and lies in its interval."""
    content = json.loads(printed(invoke("best", "--home", str(finished), "--json")))
    baseline = sum(content["baseline"]) / len(content["baseline"])
    assert content["gain"] == pytest.approx(content["mean"] / baseline)
    low, high = content["interval"]
    assert low <= content["gain"] <= high
    assert len(content["trials"]) == len(content["values"])
    assert documented("best", content)


def test_dead_ends_are_readable_blocks(invoke: Invoke, finished: Path) -> None:
    """Each dead end: conditions, reason, where it was seen, the line that tells, and the cure."""
    text = printed(invoke("deadends", "--all", "--home", str(finished)))
    _, *blocks = text.split("\n\n")  # the table comes first
    head, *details = next(block for block in blocks if ONLY_GLOO_GRAPHS in block).strip().splitlines()
    assert head.split()[1] in ("confirmed", "suspected")  # a dozen launches may be too few to be sure
    assert details[0].strip().startswith("cuda_graph_incompatible, seen in p")
    assert "operation not permitted when stream is capturing" in details[1]
    assert details[2].strip().startswith("cure: ")


def test_dead_ends_as_json_are_those_of_the_text(invoke: Invoke, finished: Path) -> None:
    """One map, two forms."""
    content = json.loads(printed(invoke("deadends", "--home", str(finished), "--json")))
    text = printed(invoke("deadends", "--all", "--home", str(finished)))
    assert {found["reason"] for found in content} == {"missing_dependency", "cuda_graph_incompatible"}
    assert [found["id"] for found in content if found["id"] not in text] == []
    assert documented("deadends", content[0])


def test_a_second_sync_changes_nothing(invoke: Invoke, finished: Path) -> None:
    """MLflow is a function of the storage: after a search that ended well there is nothing to mend."""
    content = json.loads(printed(invoke("sync", "--home", str(finished), "--json")))
    assert (content["created"], content["updated"], content["removed"]) == (0, 0, 0)
    assert content["unchanged"] == BUDGET + 1
    assert documented("sync", content)


def test_reading_does_not_write(invoke: Invoke, finished: Path) -> None:
    """Whoever looks at a study leaves it as it was."""
    before = (finished / "study.db").read_bytes()
    for command in ("status", "best", "deadends"):
        printed(invoke(command, "--home", str(finished)))
    assert (finished / "study.db").read_bytes() == before


def test_the_line_that_goes_on_names_the_home(
    invoke: Invoke, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied as it stands; a home that is found anyway is left away."""
    home = copied(finished, tmp_path / "agent-state")
    words = with_wish(home)
    for command in (["status"], ["pause"], ["try", *words]):
        assert f"agent resume SyntheticEngine --home {home}\n" in printed(invoke(*command, "--home", str(home)))
    again = invoke("search", "--engine", ENGINE, *SYNTHETIC, "--home", str(home))
    assert f"agent resume SyntheticEngine --home {home}`" in again.stderr
    monkeypatch.chdir(tmp_path)
    assert "agent resume SyntheticEngine\n" in printed(invoke("status"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [(lambda text: b"text" * 1000, "file is not a database"), (lambda text: text[:20000], "malformed")],
    ids=["not", "cut"],
)
def test_a_damaged_study_database_is_said_to_be_damaged(
    invoke: Invoke, finished: Path, tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    """Nobody promises that nothing is lost."""
    home = copied(finished, tmp_path / "home")
    (home / "study.db").write_bytes(damage((home / "study.db").read_bytes()))
    result = invoke("status", "--home", str(home))
    assert result.exit_code == 5
    assert words in result.stderr and "it is damaged" in result.stderr and "Nothing is lost" not in result.stderr


@pytest.mark.parametrize("command", ["sync", "ui"])
def test_a_damaged_store_of_mlflow_is_said_with_what_to_do(
    invoke: Invoke, finished: Path, tmp_path: Path, command: str
) -> None:
    """The study does not need it."""
    home = copied(finished, tmp_path / "home")
    (home / "mlflow.db").write_bytes(b"text" * 1000)
    result = invoke(command, "--home", str(home))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "file is not a database" in result.stderr and "`agent sync`" in result.stderr
    assert invoke("status", "--home", str(home)).exit_code == 0


@pytest.mark.parametrize("command", ["status", "best", "report", "deadends", "explain"])
def test_a_study_is_read_without_its_engine(
    invoke: Invoke, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Everything is stored, the command of the best as it was launched."""
    words = {"explain": ["#1"], "report": ["--output", str(tmp_path)]}.get(command, [])
    whole = printed(invoke(command, *words, "--home", str(finished)))
    monkeypatch.setitem(sys.modules, ENGINE.partition(":")[0], None)  # what a folder not on the path looks like
    result = invoke(command, *words, "--home", str(finished))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == whole.splitlines()[0]
    assert ("cannot be loaded" in result.output) == (command in ("best", "report"))


@pytest.mark.parametrize("words", [("resume", "--budget", "20"), ("sync",), ("try", "draft_length=2")])
def test_without_its_engine_a_study_does_not_go_on(
    invoke: Invoke, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """With what is missing and what to do; MLflow needs it as little as any reader."""
    home = copied(finished, tmp_path / "home")
    monkeypatch.setitem(sys.modules, ENGINE.partition(":")[0], None)
    result = invoke(*words, "--home", str(home))
    if words == ("sync",):
        assert result.exit_code == 0, result.output
        return
    assert result.exit_code == 2, result.output
    assert "cannot be loaded" in result.stderr and "PYTHONPATH" in result.stderr


def test_a_dry_run_prints_the_plan_and_writes_nothing(invoke: Invoke, tmp_path: Path) -> None:
    """Node, engine, what will be searched and how much of it: what has no meaning here is not counted."""
    home = tmp_path / "home"
    text = printed(invoke("search", "--engine", ENGINE, *SYNTHETIC, "--home", str(home), "--dry-run"))
    assert "40 launches at concurrency 1, 8" in text
    assert "draft_length (9)" in text
    assert "nccl_algo" not in text
    assert not home.exists()


def test_a_home_can_be_moved(invoke: Invoke, finished: Path, tmp_path: Path) -> None:
    """The note of the last study names no path of the folder it lies in."""
    home = copied(finished, tmp_path / "elsewhere")
    (home / "study.db").rename(home / "aside.db")
    assert "there is no study" in invoke("status", "--home", str(home)).stderr


def test_an_unknown_study_names_the_nearest(invoke: Invoke, finished: Path) -> None:
    """A misspelt study is answered with the one that was meant."""
    result = invoke("status", "SynteticEngine", "--home", str(finished))
    assert result.exit_code == 2
    assert "Did you mean 'SyntheticEngine'?" in result.stderr


def test_what_is_asked_for_is_queued_and_the_spent_budget_grows(invoke: Invoke, finished: Path, tmp_path: Path) -> None:
    """A user who insists on an assignment gets a launch for it."""
    home = copied(finished, tmp_path / "home")
    words = with_wish(copied(finished, tmp_path / "tried"))
    text = printed(invoke("try", *words, "--home", str(home)))
    assert text.startswith(f"queued for SyntheticEngine: {' '.join(words)}")
    assert json.loads(printed(invoke("status", "--home", str(home), "--json")))["budget"] == BUDGET + 1
    printed(invoke("try", *words, "--home", str(home)))  # the same again is the same launch
    assert json.loads(printed(invoke("status", "--home", str(home), "--json")))["budget"] == BUDGET + 1
    with_wish(home, without=words)
    assert json.loads(printed(invoke("status", "--home", str(home), "--json")))["budget"] == BUDGET + 2


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["allreduce=nccl"], "agent deadends"),
        (["draft_lenght=2"], "Did you mean 'draft_length'?"),
        (["draft_length=99"], "0, 1, 2, 3"),
        (["draft_length"], "NAME=VALUE"),
    ],
)
def test_what_cannot_be_launched_is_not_queued(invoke: Invoke, finished: Path, words: list[str], fragment: str) -> None:
    """A dead assignment or an unknown name is refused, and the study stays as it is."""
    before = query(finished, "SELECT * FROM study_user_attributes")
    result = invoke("try", *words, "--home", str(finished))
    assert result.exit_code == 2
    assert fragment in result.stderr
    assert query(finished, "SELECT * FROM study_user_attributes") == before


def documented(command: str, content: dict[str, object]) -> bool:
    """Return whether the page beside the commands lists exactly these keys for this command."""
    page = (Path(str(command_line_package.__file__)).parent / "README.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{command} --json`"))
    keys = re.sub(r"\([^)]*\)", "", row.split("|")[2])  # what an inner object holds stands in brackets
    assert {word.strip("` ") for word in keys.split(",")} == set(content)
    return True


@pytest.mark.parametrize(
    ("variables", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_off_when_asked(finished: Path, variables: dict[str, str], is_coloured: bool) -> None:
    """On a terminal the screen is coloured, unless NO_COLOR or a dumb terminal says otherwise."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "agent", "status", "--home", str(finished)]
    kept = environment(**{"TERM": "xterm", **variables})
    subprocess.run(command, env=kept, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL, check=True)
    os.close(follower)
    shown = os.read(leader, 65536)
    os.close(leader)
    assert (b"\x1b[1" in shown or b"\x1b[3" in shown) is is_coloured
