"""What the command line offers, and that saying so costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from agent.cli.main import COMMANDS, SUMMARIES, main
from agent.errors import INTERRUPTED_EXIT_CODE, UsageError
from tests.support.command_line import environment

GOLDEN = Path(__file__).with_name("options.txt")
HEAVY = ("torch", "ray", "mlflow", "optuna", "pydantic", "rich", "yaml", "sqlalchemy")
LIST_MODULES = """
import json, sys
from click.testing import CliRunner
from agent.cli.main import main
assert CliRunner().invoke(main, sys.argv[1:]).exit_code == 0
print(json.dumps(sorted(sys.modules)))
"""


def commands() -> dict[str, click.Command]:
    """Return every command by name."""
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def options() -> list[str]:
    """Return one line for each option and argument of each command."""
    lines = []
    for name, command in commands().items():
        for parameter in command.params:
            words = parameter.opts if isinstance(parameter, click.Option) else [parameter.make_metavar(CONTEXT)]
            lines.append(f"{name} {', '.join(words)}")
    return lines


CONTEXT = click.Context(main)


def test_help_loads_nothing_heavy() -> None:
    """Help, and the list of commands, come at once: no library is imported for them."""
    command = [sys.executable, "-c", LIST_MODULES, "--help"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(json.loads(done.stdout))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    """A command's own help comes at once too."""
    command = [sys.executable, "-c", LIST_MODULES, name, "--help"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(json.loads(done.stdout))


def test_every_command_is_in_the_list_and_explains_itself(invoke: Callable[..., Result]) -> None:
    """No command, option or argument without a word on what it is for."""
    listing = " ".join(invoke("--help").stdout.split())
    for name, command in commands().items():
        assert SUMMARIES[name] in listing
        assert command.help
        assert (command.epilog or "").startswith("Example: "), name
        assert not [option.name for option in command.params if isinstance(option, click.Option) and not option.help]


def test_options_are_added_and_removed_on_purpose() -> None:
    """The list of all options is a promise: a new one is written down here in the same change."""
    assert options() == GOLDEN.read_text(encoding="utf-8").splitlines()


def test_without_a_command_the_help_says_what_there_is(invoke: Callable[..., Result]) -> None:
    """As it is, and not as one long line of an error."""
    said = invoke()
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr == invoke("--help").stdout
    assert "Exit codes" in said.stderr


def test_the_version_is_told(invoke: Callable[..., Result]) -> None:
    """A report of a fault begins with it."""
    assert invoke("--version").stdout.startswith("agent, version ")


@pytest.mark.parametrize("place", ["parse_args", "_invoke"])
def test_an_interruption_at_any_moment_has_the_code_of_one(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Before a command handles it itself, or again while it does."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(main), place, interrupted)
    assert CliRunner().invoke(main, ["status"]).exit_code == INTERRUPTED_EXIT_CODE == 130


def _missing(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


def _without_a_version(name: str) -> None:
    """What Python 3.11 gives for a folder of metadata without its file."""


@pytest.mark.parametrize("missing", [_missing, _without_a_version])
def test_a_copy_that_is_not_installed_says_so_instead_of_its_version(
    monkeypatch: pytest.MonkeyPatch, missing: Callable[[str], str | None]
) -> None:
    assert CliRunner().invoke(main, ["--version"]).output.startswith("agent, version ")
    monkeypatch.setattr(metadata, "version", missing)
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == UsageError.exit_code
    assert "pip install" in result.stderr and not result.stdout
