"""The state folder: nothing before it is needed, whole files or none, and names that are folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.home import Home, folder_problem, name_problem, write_atomically


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is not there yet."""
    return Home(tmp_path / "deep" / "home")


def test_the_option_goes_before_the_variable_and_the_variable_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--home`, then AGENT_HOME, then ./agent-state."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "variable"))
    assert Home.find("option").path == tmp_path / "option"
    assert Home.find(None).path == tmp_path / "variable"
    monkeypatch.delenv("AGENT_HOME")
    assert Home.find(None).path == tmp_path / "agent-state"


def test_looking_creates_nothing(home: Home, tmp_path: Path) -> None:
    """To check and to ask for the last study leaves the disk as it was."""
    home.check()
    assert home.last() == {}
    assert list(tmp_path.iterdir()) == []


def test_the_home_is_for_its_owner_alone(home: Home) -> None:
    """Logs and commands of others' models are nobody else's business."""
    home.create()
    assert home.path.stat().st_mode & 0o077 == 0


def test_a_home_below_a_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """The message names the folder, the reason and the option."""
    (tmp_path / "file").touch()
    for act in (Home.check, Home.create):
        with pytest.raises(UsageError, match=r"file/home cannot be written .* --home"):
            act(Home(tmp_path / "file" / "home"))


def test_the_last_study_is_remembered_wherever_the_folder_goes(home: Home, tmp_path: Path) -> None:
    """The note names no path of its own folder; other addresses stand as they are."""
    home.create()
    home.remember("study", home.storage_url, "http://127.0.0.1:5000")
    moved = Home(home.path.rename(tmp_path / "moved"))
    assert moved.last() == {"study": "study", "storage": moved.storage_url, "tracking": "http://127.0.0.1:5000"}


def test_a_broken_note_is_an_error_with_a_remedy(home: Home) -> None:
    """No traceback for a file that somebody edited."""
    home.create()
    (home.path / "last.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="name the study and --storage"):
        home.last()


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """No half-written file, and nothing left beside it."""
    path = tmp_path / "note.json"
    for content in ({"a": 1}, {"b": 2}):
        write_atomically(path, json.dumps(content))
        assert json.loads(path.read_text(encoding="utf-8")) == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["torch", "a", "9-lives", "Qwen3.5_tp8", "x" * 100])
def test_plain_names_are_accepted(name: str) -> None:
    """Letters, digits, dot, dash, underscore."""
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a..b", "-x", "a b", "a\n", "é", "x" * 101, "a/probes"])
def test_names_that_are_paths_or_flags_are_refused(name: str) -> None:
    """A name becomes a folder, an experiment and a word of a command."""
    assert "letters, digits" in str(name_problem(name))


def test_a_folder_that_takes_no_files_is_told_apart(tmp_path: Path) -> None:
    """Tried, not guessed from permissions, which mean little to root."""
    assert folder_problem(tmp_path) is None
    assert folder_problem(Path("/proc")) is not None
    assert list(tmp_path.iterdir()) == []


def test_a_command_names_the_folder_only_where_it_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Home.find(None).words() == []
    assert Home.find("agent-state").words() == []
    assert Home.find("elsewhere").words() == ["--home", str(tmp_path / "elsewhere")]
    monkeypatch.setenv("AGENT_HOME", "elsewhere")
    assert Home.find(str(tmp_path / "elsewhere")).words() == []
