"""No secret that an engine gets to see is ever shown: on screens, in JSON, in MLflow, in what is exported."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.command_line import SYNTHETIC, Search, start_agent
from tests.support.failing_engines import INHERITED

LEAKY = "tests.support.failing_engines:LeakyEngine"
SECRETS = {
    "variable": "variable-sesame",
    "option": "option-sesame",
    "url": "url-sesame",
    "json": "json-sesame",
    "inherited": "inherited-sesame",
}
GIVEN = (
    *("--env", f"HF_TOKEN={SECRETS['variable']}", "--env", f"HTTPS_PROXY=http://me:{SECRETS['url']}@proxy:1"),
    *("--option", f"api-key={SECRETS['option']}"),
    *("--option", f'loader={{"secret": "{SECRETS["json"]}"}}'),
)
READING = [
    ["status"],
    ["status", "--json"],
    ["best"],
    ["best", "--json"],
    ["deadends", "--all"],
    ["deadends", "--json"],
    ["explain", "0"],
    ["explain", "0", "--json"],
]


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Search]:
    """A search whose engine prints whatever it gets to see, in launches that work and in launches that fail."""
    home = tmp_path_factory.mktemp("leaky") / "home"
    words = ("search", *SYNTHETIC, "--engine", LEAKY, *GIVEN, "--budget", "6", "--pin", "cuda_graph_max_bs=0")
    search = start_agent(*words, home=home, **{INHERITED: SECRETS["inherited"]})
    yield search
    search.process.kill()
    search.process.communicate()


def leaked(text: str) -> list[str]:
    """Return the kinds of secrets that a text holds."""
    return [kind for kind, secret in SECRETS.items() if secret in text]


def test_the_screen_of_a_search_shows_no_secret(leaky: Search) -> None:
    """The plan, the lines of the trials, the dead ends and the command that repeats the best."""
    ended = leaky.ended
    assert ended.returncode == 0, ended.stderr
    assert "401 for" in ended.stdout
    assert 'HF_TOKEN="$HF_TOKEN"' in ended.stdout
    assert leaked(ended.stdout + ended.stderr) == []


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_reading_command_shows_no_secret(invoke: Callable[..., Result], leaky: Search, words: list[str]) -> None:
    """For people and for programs."""
    assert leaky.ended.returncode == 0
    result = invoke(*words, "--home", str(leaky.home))
    assert result.exit_code == 0, result.output
    assert leaked(result.output) == []


def test_the_tracking_server_holds_no_secret(leaky: Search) -> None:
    """Neither its database nor its artifacts, the engine's log among them."""
    assert leaky.ended.returncode == 0
    files = [path for path in (leaky.home / "mlartifacts").rglob("*") if path.is_file()]
    assert any(path.name == "log.txt" for path in files)
    assert {path: found for path in files if (found := leaked(path.read_text(errors="replace")))} == {}
    with closing(sqlite3.connect(leaky.home / "mlflow.db")) as database:
        assert leaked("\n".join(database.iterdump())) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--env", "HF_TOKENsesame-word"],
        ["--env", "a b=sesame-word"],
        ["--env", "PLAIN=sesame-word", "--env", "PLAIN=other"],
        ["--option", "api-key=sesame-word", "--option", "api-key=other"],
        ["--tracking-uri", "http://me:sesame-word@127.0.0.1:1"],
        ["--storage", "postgresql://me:sesame-word@127.0.0.1:1/x"],
        ["--storage", "nonsense://me:sesame-word@host"],
        ["--ray-address", "ray://me:sesame-word@127.0.0.1:1"],
        ["--base-cmd", "vllm --api-key sesame-word"],
        ["--base-cmd", "HF_TOKEN=sesame-word vllm serve x | tee log"],
        ["--model", "https://me:sesame-word@host/a/b/c"],
        ["--name", "api_key=sesame-word"],
        ["--spec", "/no/such/HF_TOKEN=sesame-word"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_message_repeats_no_secret(invoke: Callable[..., Result], tmp_path: Path, words: list[str]) -> None:
    """What is refused may hold one: it was typed in the wrong place, or without its name."""
    replayed = ("--engine", "replay", "--node", "pcie8-blackwell-cuda128")
    node = () if {"--base-cmd", "--model"} & set(words) else replayed
    result = invoke("search", "--dry-run", *node, "--home", str(tmp_path), *words)
    assert result.exit_code in (2, 4), result.output
    assert "sesame-word" not in result.output


def test_a_specification_s_secret_is_not_repeated(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """Neither a variable's value nor what stands under a wrong key."""
    spec = tmp_path / "study.yaml"
    for text in (
        "environment: {HF_TOKEN: [sesame-word]}\n",
        "environment: {'a b': sesame-word}\n",
        "api_key: sesame-word\n",
    ):
        spec.write_text(text, encoding="utf-8")
        result = invoke("search", "--dry-run", "--spec", str(spec), "--home", str(tmp_path / "home"))
        assert result.exit_code == 2, result.output
        assert "sesame-word" not in result.output
