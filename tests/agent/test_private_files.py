"""State is this user's alone, whole or not there, and lies where it was meant to lie."""

from __future__ import annotations

import os
import pickle
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli.main import main
from agent.errors import StorageError, UsageError
from agent.home import Home, name_problem, write_atomically
from agent.outcome import Outcome, OutcomeKind
from agent.private_files import check_own, private_files
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore
from agent.studies import open_study
from runners import Exit, Phase, RunRecord
from tests.support.simulated_study import LEASE
from tests.support.stores import sqlite_store, work

STRANGER = 54321
"""A user id that nobody has."""
PICKLE = "cos\nmkdir\n(S'{path}'\ntR."
"""A pickle in protocol 0, which is plain text: whoever loads it makes a folder."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@pytest.fixture
def loose() -> Iterator[None]:
    """The usual umask, whatever the one is under which the tests run."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """Return a file's permissions."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("loose")
def test_what_a_study_writes_is_for_its_user_alone(tmp_path: Path) -> None:
    """Database, note and logs; also in a folder that was there before and that others may enter."""
    home = Home(tmp_path / "home")
    with private_files():
        home.create()
        home.remember("study", "sqlite:///x", "http://x")
        store = sqlite_store(home.path)
        folder = home.artifact_dir("study", "0")
        folder.mkdir(parents=True)
        (folder / "engine.log").touch()
    assert mode(home.path) == mode(folder) == 0o700
    assert mode(home.path / "last.json") == mode(home.path / "study.db") == mode(folder / "engine.log") == 0o600
    assert store.name == "study"
    (tmp_path / "others").touch()
    assert mode(tmp_path / "others") == 0o644


@pytest.mark.usefixtures("loose")
def test_every_command_runs_under_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only `search`: `sync` and `try` write too. Afterwards the process is as it was."""
    seen: list[int] = []

    def looked_at(option: str | None) -> Home:
        seen.append(os.umask(0o077))
        return Home(tmp_path)

    monkeypatch.setattr(Home, "find", looked_at)
    CliRunner().invoke(main, ["status"])
    assert seen == [0o077]
    assert os.umask(0o022) == 0o022


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """Here the text cannot be encoded; a full disk ends in the same way."""
    path = tmp_path / "last.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert [each.name for each in tmp_path.iterdir()] == ["last.json"]
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc",
        "a/b",
        "a\\b",
        "..",
        ".",
        "",
        "a..b",
        "x\n",
        "\nx",
        "a\x00b",
        "x" * 101,
        "ѕtudy",
        "study\u202e",
        "-x",
        " x",
    ],
)
def test_a_name_that_is_a_trick_is_refused(name: str) -> None:
    """It becomes a folder, an experiment, and a word of commands that are shown."""
    assert name_problem(name)


@pytest.mark.parametrize("name", ["../../x", "/x", "a\nb"])
def test_a_name_that_somebody_else_stored_is_no_study(tmp_path: Path, name: str) -> None:
    """Whoever may write to a shared storage could otherwise choose where our files go."""
    sqlite_store(tmp_path, name)
    with pytest.raises(UsageError, match="not made by the agent"):
        open_study(Home(tmp_path), name, f"sqlite:///{tmp_path / 'study.db'}")


def test_a_link_of_ones_own_may_lead_to_another_disk(tmp_path: Path) -> None:
    """That is the user's decision."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "artifacts").symlink_to(tmp_path / "disk")
    check_own(tmp_path, tmp_path / "artifacts" / "study" / "0")


@as_root
@pytest.mark.parametrize("place", ["artifacts", "artifacts/study", "artifacts/study/0"])
def test_a_link_that_somebody_else_planted_is_not_followed(tmp_path: Path, place: str) -> None:
    """At any step down to the folder of the trial."""
    link = tmp_path / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/tmp")  # noqa: S108 (a target)
    os.lchown(link, STRANGER, -1)
    with pytest.raises(StorageError, match="is a link of another user"):
        check_own(tmp_path, tmp_path / "artifacts" / "study" / "0")


@as_root
def test_a_folder_of_somebody_else_is_not_written_to(tmp_path: Path) -> None:
    """They could put links into it while a launch runs."""
    folder = tmp_path / "artifacts" / "study"
    folder.mkdir(parents=True)
    os.chown(folder, STRANGER, -1)
    with pytest.raises(StorageError, match="of another user"):
        check_own(tmp_path, folder / "0")


def test_a_file_in_the_place_of_a_folder_is_said(tmp_path: Path) -> None:
    """Otherwise the first launch would be lost."""
    (tmp_path / "artifacts").touch()
    with pytest.raises(StorageError, match="no folder"):
        check_own(tmp_path, tmp_path / "artifacts" / "study" / "0")


def rows(store: StudyStore) -> list[tuple[str, str, object]]:
    """Return table, column and value of everything that is stored and not a number."""
    found = []
    with closing(sqlite3.connect(store.url.removeprefix("sqlite:///"))) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            cursor = database.execute(f"SELECT * FROM {table}")  # noqa: S608 (a name of the database's own)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                found += [(table, name, value) for name, value in zip(names, row, strict=True)]
    return [each for each in found if not isinstance(each[2], int | float | None)]


def test_everything_stored_is_text(tmp_path: Path) -> None:
    """No binary value, which is how a pickle would be stored."""
    store = sqlite_store(tmp_path)
    trial = store.open_trial(work(), "cookie", LEASE, "/nowhere")
    record = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0)
    store.close(trial, Outcome(kind=OutcomeKind.MEASURED, value=1.0), record)
    stored = rows(store)
    assert {table for table, _, _ in stored} >= {"studies", "trials", "trial_params", "trial_user_attributes"}
    assert [each for each in stored if not isinstance(each[2], str)] == []


def pickle_works(made: Path) -> bool:
    """True when loading the planted text would have made the folder: else the test would prove nothing."""
    pickle.loads(PICKLE.format(path=made).encode())  # noqa: S301 (what is planted here)
    return made.is_dir()


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("study_user_attributes", "value_json"),
        ("trial_user_attributes", "value_json"),
        ("trial_params", "distribution_json"),
    ],
)
def test_a_pickle_that_somebody_planted_is_not_loaded(tmp_path: Path, table: str, column: str) -> None:
    """What is no JSON ends as an error of the storage, and runs nothing."""
    store = sqlite_store(tmp_path)
    store.open_trial(work(), "cookie", LEASE, "/nowhere")
    made = tmp_path / "made-by-a-pickle"
    with closing(sqlite3.connect(tmp_path / "study.db")) as database, database:
        database.execute(f"UPDATE {table} SET {column} = ?", (PICKLE.format(path=made),))  # noqa: S608 (above)
    result = CliRunner().invoke(main, ["status", "study", "--storage", store.url, "--home", str(tmp_path)])
    assert result.exit_code == StorageError.exit_code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "cannot be read" in result.stderr
    assert not made.exists()
    assert pickle_works(made)
    with pytest.raises(StorageError):
        StudyStore(open_storage(store.url), store.url, "study")
