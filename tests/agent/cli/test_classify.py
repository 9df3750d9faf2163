"""`agent classify`: a pasted log gives reason, decisive line and cure, without a study."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.cli.main import main

Invoke = Callable[..., Result]
OOM = "[rank0] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.\n"
KEYS = [
    "blames",
    "confidence",
    "cure",
    "decisive",
    "depends_on",
    "log",
    "note",
    "other_reasons",
    "phase",
    "policy",
    "reason",
    "rule",
    "supporting",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("starting\n" + OOM)
    return path


def test_a_log_gives_reason_line_and_cure(invoke: Invoke, log: Path) -> None:
    """What an engineer wants to see first."""
    done = invoke("classify", str(log))
    assert done.exit_code == 0
    assert all(word in done.stdout for word in ("gpu_oom", "line 2: torch.OutOfMemoryError", "cure"))


def test_json_has_the_same_keys_for_a_failure_and_for_none(invoke: Invoke, log: Path, tmp_path: Path) -> None:
    """A reader needs no case for a log without a failure."""
    healthy = tmp_path / "healthy.log"
    healthy.write_text("INFO:     Application startup complete.\n")
    failed, fine = json.loads(invoke("classify", str(log), str(healthy), "--json").stdout)
    assert sorted(failed) == sorted(fine) == KEYS
    assert (failed["reason"], failed["decisive"]["number"], fine["reason"]) == ("gpu_oom", 2, "none")


def test_one_log_is_one_object(invoke: Invoke, log: Path) -> None:
    """Several are an array."""
    assert json.loads(invoke("classify", str(log), "--json").stdout)["rule"] == "M001"


def test_standard_input_is_a_log_too() -> None:
    """An engineer pastes."""
    done = CliRunner().invoke(main, ["classify", "-", "--json"], input=OOM)
    assert json.loads(done.stdout)["reason"] == "gpu_oom"


def test_an_exit_code_is_evidence(invoke: Invoke, tmp_path: Path) -> None:
    """A signal without a word is a death, not out of memory."""
    path = tmp_path / "log"
    path.write_text("starting\n")
    assert json.loads(invoke("classify", str(path), "--json", "--exit-code", "-9").stdout)["reason"] == "process_killed"


def test_control_characters_of_a_log_do_not_reach_the_terminal(invoke: Invoke, tmp_path: Path) -> None:
    """A log is somebody else's text."""
    path = tmp_path / "log"
    path.write_text("RuntimeError: \x1b]0;title\x07 odd\n")
    assert "\x1b" not in invoke("classify", str(path)).output


@pytest.mark.parametrize("name", ["missing.log", "."])
def test_what_cannot_be_read_is_one_message(invoke: Invoke, name: str) -> None:
    """Exit code 2, as for every other wrong argument."""
    done = invoke("classify", name)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


def test_rules_of_the_user_are_read_and_refused(invoke: Invoke, log: Path, tmp_path: Path) -> None:
    """A bad pattern is named with file and line."""
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - {code: Z001, name: my-rule, reason: unknown, any_of: ['('], cure: none}\n")
    done = invoke("classify", str(log), "--rules", str(rules))
    assert done.exit_code == 2
    assert f"{rules}:2: " in done.stderr
