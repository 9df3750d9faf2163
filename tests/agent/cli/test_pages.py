"""Commands of the documentation that read a study, or plan one, do what they are shown for, on a finished study."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.code_blocks import ShellCommand, blocks, commands
from tests.support.command_line import copied

Invoke = Callable[..., Result]
READING = ("status", "best", "deadends", "explain", "report", "pause", "sync", "classify", "reclassify")
ELSEWHERE = ("--storage", "--tracking-uri", "--ray-address", "--engine-python", "--model", "--base-cmd", "--spec")
"""Options with which a command needs something that is not here: parsed in `tests/repo/test_code_blocks.py`."""
LOG = "[rank0] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.\n"


def of_this_study(command: ShellCommand) -> bool:
    """Return whether a command can be run on the study at hand."""
    words = command.words
    is_ours = command.program == "agent" and not command.where.startswith("agent/tutorial.md")
    return is_ours and words[1] in READING and not set(ELSEWHERE) & set(words)


def plans(command: ShellCommand) -> bool:
    """Return whether a command begins a search that could be planned on this machine."""
    is_search = command.program == "agent" and command.words[1] == "search"
    return is_search and not set(ELSEWHERE) & set(command.words)


@pytest.fixture
def folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder: the study, a server's log, rules of one's own, a node model."""
    copied(finished, tmp_path / "agent-state")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.log").write_text(LOG, encoding="utf-8")
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(LOG.encode()))
    files = {"yaml rules": "mine.yaml", "yaml node": "my-node.yaml"}
    for kind, name in files.items():
        (tmp_path / name).write_text(blocks(kind)[0].text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", [each for each in commands() if of_this_study(each)], ids=str)
def test_a_command_that_reads_a_study_works_on_one(command: ShellCommand, folder: Path, invoke: Invoke) -> None:
    words = list(command.words[1:])
    if words[:2] == ["deadends", "forget"]:  # the page's id is that of its own study
        words[2] = json.loads(invoke("deadends", "--json").stdout)[0]["id"]
    done = invoke(*words, stdin=LOG)
    assert done.exit_code == 0, done.output
    assert done.stdout


@pytest.mark.parametrize("command", [each for each in commands() if plans(each)], ids=str)
def test_a_search_that_a_page_shows_can_be_planned(command: ShellCommand, folder: Path, invoke: Invoke) -> None:
    """Everything of it is checked, and nothing is launched."""
    words = [word for word in command.words[1:] if word != "--dry-run"]
    done = invoke(*words, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "searching: " in done.stdout
