"""What the user typed or wrote is wrong: exit code 2, one message that says where and what to do, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.command_line import ENGINE, SYNTHETIC

Invoke = Callable[..., Result]
SEARCH = ("search", "--engine", ENGINE, *SYNTHETIC)
LONG_NAME = "x" * 300


def refused(result: Result, home: Path, *fragments: str, exit_code: int = 2) -> None:
    """Assert that a command said what is wrong in one message, without a traceback, and wrote nothing."""
    assert result.exit_code == exit_code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.count("Error:") == 1
    assert not [fragment for fragment in fragments if fragment not in result.stderr], result.stderr
    assert not home.exists()


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (["--bugdet", "3"], ["--bugdet", "'--budget'"]),
        (["--budget", "0"], ["--budget 0", "at least 1"]),
        (["--budget", "-1"], ["--budget -1", "at least 1"]),
        (["--budget", "abc"], ["'--budget'", "'abc'"]),
        (["--tp", "0"], ["--tp 0", "at least 1"]),
        (["--time-budget", "nonsense"], ["--time-budget 'nonsense'", "90s, 30m or 2h"]),
        (["--concurrency", "0,1"], ["--concurrency", "at least 1"]),
        (["--concurrency", "a"], ["'--concurrency'", "1,8"]),
        (["--pin", "draft_lenght=3"], ["--pin draft_lenght", "Did you mean 'draft_length'?"]),
        (["--pin", "draft_length=33"], ["--pin draft_length", "'33'", "0, 1, 2, 3"]),
        (["--pin", "draft_length"], ["'--pin'", "NAME=VALUE"]),
        (["--pin", "draft_length=3", "--pin", "draft_length=4"], ["'--pin'", "twice", "as 3 and as 4"]),
        (["--pin", "draft_length=3", "--exclude", "draft_length=3"], ["draft_length=3", "pinned and excluded"]),
        (
            ["--exclude", "expert_parallel=true", "--exclude", "expert_parallel=false"],
            ["--exclude expert_parallel", "at least one"],
        ),
        (["--name", "../x"], ["--name '../x'", "letters, digits"]),
        (["--name", "a/b"], ["--name 'a/b'", "letters, digits"]),
        (["--name", ""], ["--name ''", "letters, digits"]),
        (["--name", LONG_NAME], ["--name 'xxx", "at most 100"]),
        (["--engine", "unknown"], ["--engine", "'unknown'", "Known: replay, sglang, torch, vllm"]),
        (["--engine", "no.such.module:Engine"], ["--engine", "cannot be loaded"]),
        (["--engine", "os:path"], ["--engine", "cannot be loaded"]),
        (["--engine", ".:Engine"], ["--engine", "cannot be loaded"]),
        (["--engine", "collections:OrderedDict"], ["--engine", "it lacks name, rungs"]),
        (["--storage", "sqlite:///" + "x" * 5000], ["--storage", "File name too long"]),
        (["--budget", "9" * 30], ["--budget", "at most"]),
        (["--seed", str(2**32)], ["--seed", "at most"]),
        (["--time-budget", "9" * 400 + "h"], ["--time-budget", "ten years"]),
        (["--space", "torsh"], ["torsh", "'torch'"]),
        (["--spec", "missing.yaml"], ["missing.yaml", "cannot be read"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_a_wrong_option_is_named_with_its_remedy(
    invoke: Invoke, tmp_path: Path, words: list[str], fragments: list[str]
) -> None:
    """An option that cannot be followed is refused before anything is created."""
    home = tmp_path / "home"
    refused(invoke(*SEARCH, "--home", str(home), *words), home, *fragments)


def test_what_moves_the_cursor_is_shown_as_an_escape(invoke: Invoke, tmp_path: Path) -> None:
    """Somebody else's file or words must not write over the screen."""
    home, spec = tmp_path / "home", tmp_path / "study.yaml"
    spec.write_text('"bud\\eget\\n": 3\n', encoding="utf-8")
    refused(invoke(*SEARCH, "--home", str(home), "--spec", str(spec)), home, ":1: bud\\x1bget\\n")
    refused(invoke(*SEARCH, "--home", str(home), "--\x1b[2J"), home, "--\\x1b[2J")


def test_an_unknown_command_names_the_nearest(invoke: Invoke, tmp_path: Path) -> None:
    """A misspelt command is answered with the one that was meant."""
    refused(invoke("serach"), tmp_path / "home", "'serach'", "Did you mean 'search'?")


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("budget: [3\n", [":2:", "not valid YAML"]),
        ("- budget\n", [":1:", "mapping"]),
        ("", ["empty"]),
        ("seed: 1\nbudgett: 3\n", [":2: budgett", "Did you mean 'budget'?"]),
        ("seed: 1\nbudget: many\n", [":2: budget", "integer"]),
        ("seed: 1\nseed: 2\n", [":2: seed", "twice"]),
        ("time_budget: soon\n", [":1: time_budget", "90s, 30m or 2h"]),
        ("concurrency: [8, 8]\n", [":1: concurrency", "different levels"]),
        ("name: ../x\n", [":1: name", "letters, digits"]),
        ("pin:\n  draft_length: 99\n", [":2: pin.draft_length", "99", "0, 1, 2, 3"]),
        ("pin:\n  draft_lenght: 3\n", [":2: pin.draft_lenght", "Did you mean 'draft_length'?"]),
        ("pin:\n  draft_length: 3\nexclude:\n  draft_length: [3]\n", [":4: exclude.draft_length", "keep one"]),
        ("exclude:\n  expert_parallel: [true, false]\n", [":2: exclude.expert_parallel", "at least one"]),
        ("exclude:\n  draft_length: 3\n", [":2: exclude.draft_length", "a list"]),
        ("options:\n  ratio: .nan\n", [":2: options.ratio", "finite"]),
        ("budget: true\n", [":1: budget", "integer"]),
        ("storage: nonsense\n", [":1: storage", "sqlite:////"]),
        ("tracking_uri: nonsense\n", [":1: tracking_uri", "http://HOST:PORT"]),
    ],
)
def test_a_wrong_specification_is_named_with_file_line_and_key(
    invoke: Invoke, tmp_path: Path, text: str, fragments: list[str]
) -> None:
    """What is wrong in study.yaml is found there, not at some option that was never typed."""
    home, spec = tmp_path / "home", tmp_path / "study.yaml"
    spec.write_text(text, encoding="utf-8")
    refused(invoke(*SEARCH, "--home", str(home), "--spec", str(spec)), home, str(spec), *fragments)


SPACE = """engine: mine
parameters:
  allreduce:
    {meaning: how, source: here, values: [a, b], default: a, flag: allreduce}
  size:
    {meaning: how much, source: here, values: [1, 2], default: 1, flag: size}
"""


@pytest.mark.parametrize(
    ("more", "fragments"),
    [
        ("relations:\n  - at_most: {left: size, right: sise}\n    why: w\n", [":8: relations", "Did you mean 'size'?"]),
        ("baseline:\n  size: 3\n", [":8: baseline.size", "1, 2"]),
        ("engine: other\n", [":7: engine", "twice"]),
        ("relation: []\n", [":7: relation", "Did you mean 'relations'?"]),
        (
            "  limit:\n    {meaning: m, source: s, values: [-2, -1], default: -1, flag: limit}\n"
            "relations:\n  - at_most: {left: size, right: limit}\n    why: w\n",
            [":10: relations", "no values of size, limit can satisfy"],
        ),
    ],
)
def test_a_wrong_space_is_named_with_file_line_and_key(
    invoke: Invoke, tmp_path: Path, more: str, fragments: list[str]
) -> None:
    """A space of one's own is checked as a whole before anything else."""
    home, space = tmp_path / "home", tmp_path / "space.yaml"
    space.write_text(SPACE + more, encoding="utf-8")
    words = ("search", "--engine", ENGINE, "--space", str(space), "--home", str(home))
    refused(invoke(*words), home, str(space), *fragments)


@pytest.mark.parametrize(
    ("url", "fragments"),
    [
        ("postgresql+pg8000://user:s3cret@127.0.0.1:1/x", ["pg8000 is not installed", "pip install pg8000"]),
        ("nonsense", ["sqlite:////"]),
        ("foo://user:s3cret@host/x", ["sqlite:////"]),
        ("postgresql://user:s3cret@host:port/x", ["sqlite:////"]),
        ("sqlite://", ["memory"]),
        ("sqlite:////proc/study.db", ["nothing can be written into /proc"]),
    ],
)
def test_an_unusable_storage_is_named_without_its_password(
    invoke: Invoke, tmp_path: Path, url: str, fragments: list[str]
) -> None:
    """A storage is tried before anything is created, and its password never reaches the screen."""
    home = tmp_path / "home"
    result = invoke(*SEARCH, "--home", str(home), "--storage", url)
    refused(result, home, "--storage", *fragments)
    assert "s3cret" not in result.output


def test_a_storage_in_a_missing_folder_says_so(invoke: Invoke, tmp_path: Path) -> None:
    """SQLite would only say that it is unable to open the file."""
    home = tmp_path / "home"
    result = invoke(*SEARCH, "--home", str(home), "--storage", f"sqlite:///{tmp_path}/missing/study.db")
    refused(result, home, f"there is no folder {tmp_path}/missing")


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "http://user:s3cret@127.0.0.1:1", "http://[nonsense", "nonsense"]
)
def test_a_tracking_address_that_was_typed_must_answer(invoke: Invoke, tmp_path: Path, address: str) -> None:
    """Whoever types an address wants it used: a dead one is found at once, not after the search."""
    home = tmp_path / "home"
    result = invoke(*SEARCH, "--home", str(home), "--tracking-uri", address)
    refused(result, home, "--tracking-uri", "agent sync")
    assert "s3cret" not in result.output


@pytest.mark.parametrize("place", ["a-file/home", "/proc/home", "a-file", "x" * 5000])
def test_a_home_that_cannot_be_written_is_refused(invoke: Invoke, tmp_path: Path, place: str) -> None:
    """The state folder is tried first: a study without one would lose what it finds."""
    (tmp_path / "a-file").touch()
    result = invoke(*SEARCH, "--home", str(tmp_path / place))
    refused(result, tmp_path / "home", "cannot be written", "--home")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"])
def test_a_ray_cluster_that_does_not_answer_is_named_at_once(invoke: Invoke, tmp_path: Path, address: str) -> None:
    """Ray alone would try for two minutes; exit code 4: the node cannot be used."""
    home = tmp_path / "home"
    result = invoke(*SEARCH, "--home", str(home), "--ray-address", address)
    refused(result, home, f"Ray at {address}", exit_code=4)


def test_a_gpu_cannot_be_asked_for_where_there_is_none(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facts of the node decide, and `--device cuda` does not conjure up a GPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    home = tmp_path / "home"
    result = invoke("search", "--engine", ENGINE, "--space", "torch", "--home", str(home), "--device", "cuda")
    refused(result, home, "--device cuda", "no GPU")


@pytest.mark.parametrize("command", ["status", "best", "deadends", "sync", "resume"])
def test_without_a_study_a_command_says_how_to_begin(invoke: Invoke, tmp_path: Path, command: str) -> None:
    """Reading creates nothing, not even an empty database."""
    home = tmp_path / "home"
    refused(invoke(command, "--home", str(home)), home, "no study", "agent search")
    file = tmp_path / "study.db"
    refused(invoke(command, "--home", str(home), "--storage", f"sqlite:///{file}"), home, str(file))
    assert not file.exists()
