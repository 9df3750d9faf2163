"""Asking the installed engine: once for each installation, in the user's Python, with a clear answer when it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from runners.engine_dialects import EngineNotUsableError, EngineOptions, ask_engine
from tests.support.recorded_options import recorded

SERVER_ARGS = """
print("a banner that engines print")

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", required=True)
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
        parser.add_argument("--moe-a2a-backend", choices=["none", "deepep"])
        parser.add_argument("--hf-token", nargs="?", const=True)
        parser.add_argument("--disable-radix-cache", action="store_true")
"""
ENVIRON = """
class Envs:
    SGLANG_SIMULATE_ACC_LEN = 1
    lower = 2
"""


class Installation:
    """A package named sglang, and the environment in which Python finds it."""

    def __init__(self, root: Path) -> None:
        self.package, self.cache = root / "site" / "sglang", root / "cache"
        (self.package / "srt").mkdir(parents=True)
        (self.package / "__init__.py").write_text('__version__ = "0.5.16"\n')
        (self.package / "srt" / "__init__.py").touch()
        (self.package / "srt" / "server_args.py").write_text(SERVER_ARGS)
        (self.package / "srt" / "environ.py").write_text(ENVIRON)
        self.environment: Mapping[str, str] = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "site")}

    def ask(self, python: str | None = sys.executable, engine: str = "sglang") -> EngineOptions:
        """Ask it."""
        return ask_engine(engine, python, self.environment, self.cache)

    def break_import(self) -> None:
        """Make the engine one that cannot be imported, as without a driver; its installation stays the same."""
        (self.package / "srt" / "environ.py").write_text("raise RuntimeError('no driver')")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """A package named sglang that is not installed in our environment."""
    return Installation(tmp_path)


def test_the_engine_tells_its_version_options_and_variables(installation: Installation) -> None:
    """Whatever it prints while it is imported."""
    found = installation.ask()
    assert (found.version, found.release) == ("0.5.16", (0, 5, 16))
    assert {name: option.kind for name, option in found.options.items()} == {
        "help": "flag",
        "model-path": "value",
        "model": "value",
        "cuda-graph-bs": "list",
        "moe-a2a-backend": "value",
        "hf-token": "optional",
        "disable-radix-cache": "flag",
    }
    assert found.options["moe-a2a-backend"].choices == ("none", "deepep")
    assert found.variables == {"SGLANG_SIMULATE_ACC_LEN"}


def test_an_installation_is_imported_once(installation: Installation) -> None:
    """The second question is answered from disk, without the engine."""
    first = installation.ask()
    installation.break_import()
    assert installation.ask() == first


def test_another_installation_is_asked_again(installation: Installation) -> None:
    """An upgrade writes the package's files."""
    installation.ask()
    installation.break_import()
    os.utime(installation.package / "__init__.py", (1, 1))
    with pytest.raises(EngineNotUsableError, match="RuntimeError: no driver"):
        installation.ask()


def test_a_torn_answer_is_asked_for_again(installation: Installation) -> None:
    """A remembered answer is never trusted half."""
    first = installation.ask()
    for path in installation.cache.iterdir():
        path.write_text(path.read_text()[:100])
    assert installation.ask() == first


def test_a_cache_that_cannot_be_written_only_costs_time(installation: Installation) -> None:
    """The place is taken by a file."""
    installation.cache.write_text("")
    assert installation.ask().version == "0.5.16"


def test_an_engine_that_is_not_there_is_named_with_the_remedy(installation: Installation) -> None:
    """In that Python; nothing is remembered about it."""
    with pytest.raises(EngineNotUsableError, match="has no vllm"):
        installation.ask(engine="vllm")
    with pytest.raises(EngineNotUsableError, match="cannot be run"):
        installation.ask(python="/no/such/python")
    assert not installation.cache.exists()


def test_nothing_of_the_engine_enters_this_process(installation: Installation) -> None:
    """It is asked in a process of its own."""
    installation.ask()
    assert "sglang" not in sys.modules


@pytest.mark.parametrize(("text", "release"), [("0.32.0+cpu", (0, 32, 0)), ("0.5.10.post1", (0, 5, 10)), ("dev", ())])
def test_a_version_is_compared_by_its_numbers(text: str, release: tuple[int, ...]) -> None:
    """Local labels and post releases do not matter."""
    assert EngineOptions(engine="vllm", version=text, options={}).release == release


def test_the_recorded_lists_know_what_came_and_went() -> None:
    """A spelling of an older version is an error in a newer one."""
    assert recorded("sglang", "0.5.19").option("cuda-graph-max-bs") is not None
    assert recorded("sglang", "0.5.20").option("cuda-graph-max-bs") is None
    assert recorded("vllm", "0.29.0").option("all2all-backend") is not None


def test_what_an_engine_leaves_in_its_temporary_folder_is_removed(installation: Installation, tmp_path: Path) -> None:
    """Importing torch's compiler makes a folder there."""
    place = tmp_path / "tmp"
    place.mkdir()
    leaving = "import pathlib, tempfile\npathlib.Path(tempfile.gettempdir(), 'torchinductor_me').mkdir()\n"
    (installation.package / "srt" / "server_args.py").write_text(leaving + SERVER_ARGS)
    installation.environment = {**installation.environment, "TMPDIR": str(place)}
    assert "model-path" in installation.ask().options
    assert list(place.iterdir()) == []
