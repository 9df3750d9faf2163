"""The commands about the map: its table, `--recheck`, `forget`, and `agent explain`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.agent.cli.test_reading import documented, printed
from tests.support.command_line import agent, copied, query

Invoke = Callable[..., Result]


def dead_ends(invoke: Invoke, home: Path) -> list[dict[str, object]]:
    """Return the map of the study."""
    found: list[dict[str, object]] = json.loads(printed(invoke("deadends", "--json", "--home", str(home))))
    return found


def confirmed(invoke: Invoke, home: Path) -> dict[str, object]:
    """Return a confirmed dead end of the study that a probe shows."""
    return next(each for each in dead_ends(invoke, home) if each["state"] == "confirmed" and each["rung"] == "probe")


def test_the_table_has_a_row_for_each_dead_end_that_blocks(invoke: Invoke, finished: Path) -> None:
    """First the overview: id, conditions, reason, state, and the node time spent and saved."""
    table = printed(invoke("deadends", "--home", str(finished))).split("\n\n")[0]
    assert [title for title in ("id", "what fails", "reason", "state", "spent", "saved") if title not in table] == []
    for found in dead_ends(invoke, finished):
        assert (str(found["id"]) in table) == (found["state"] in ("confirmed", "stale"))


def test_what_is_forgotten_is_off_the_map_until_that_is_taken_back(
    invoke: Invoke, finished: Path, tmp_path: Path
) -> None:
    """And what it forbade may be asked for again."""
    home = copied(finished, tmp_path / "home")
    wanted = str(confirmed(invoke, home)["id"])
    assert "--undo" in printed(invoke("deadends", "forget", wanted, "--home", str(home)))
    assert wanted not in [each["id"] for each in dead_ends(invoke, home)]
    printed(invoke("deadends", "forget", wanted, "--undo", "--home", str(home)))
    assert wanted in [each["id"] for each in dead_ends(invoke, home)]


def test_a_recheck_is_queued_and_the_next_resume_runs_it(invoke: Invoke, finished: Path, tmp_path: Path) -> None:
    """A probe costs no launch: the budget stays spent."""
    home = copied(finished, tmp_path / "home")
    wanted = str(confirmed(invoke, home)["id"])
    assert "as a probe" in printed(invoke("deadends", "--recheck", wanted, "--home", str(home)))
    before = json.loads(printed(invoke("status", "--json", "--home", str(home))))
    assert agent("resume", home=home).returncode == 0
    after = json.loads(printed(invoke("status", "--json", "--home", str(home))))
    assert (after["spent"], after["probes"]) == (before["spent"], before["probes"] + 1)
    last = json.loads(printed(invoke("explain", f"p{after['probes'] - 1}", "--json", "--home", str(home))))
    assert last["dead_ends"] == [wanted]
    assert agent("resume", home=home).returncode == 0
    assert json.loads(printed(invoke("status", "--json", "--home", str(home)))) == after


def test_a_failure_is_explained_to_its_end(invoke: Invoke, finished: Path) -> None:
    """Reason, line, cure, what it taught, and changes that were seen to work."""
    found = confirmed(invoke, finished)
    label = str(found["support"][0])  # type: ignore[index]
    text = printed(invoke("explain", label, "--home", str(finished)))
    assert text.startswith(f"{label} probe: ")
    for fragment in (str(found["reason"]), str(found["id"]), "cure: ", "single changes that may help"):
        assert fragment in text
    content = json.loads(printed(invoke("explain", label, "--json", "--home", str(finished))))
    assert documented("explain", content)
    named = {condition["parameter"] for condition in found["conditions"]}  # type: ignore[attr-defined]
    assert content["cures"] and {cure["parameter"] for cure in content["cures"]} <= named


def test_a_launch_that_worked_needs_no_cure(invoke: Invoke, finished: Path) -> None:
    """A launch may be named with or without its sign."""
    one, other = (printed(invoke("explain", label, "--home", str(finished))) for label in ("0", "#0"))
    assert one == other
    assert "measured: " in one
    assert "may help" not in one


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["explain", "x"], "write #12 or 12 for a launch, p3 for a probe"),
        (["explain", "#9999"], "has no launch 9999: they go from 0 to "),
        (["explain", "p9999"], "has no probe 9999"),
        (["deadends", "forget"], "forget needs the ID"),
        (["deadends", "forget", "D000000"], "no dead end D000000"),
        (["deadends", "forget", "D000000", "--undo"], "is not forgotten"),
        (["deadends", "--undo"], "agent deadends forget ID"),
        (["deadends", "--recheck", "D000000"], "no dead end D000000"),
        (["deadends", "one", "two"], "one at a time"),
        (["deadends", "--study", "SyntheticEngin"], "Did you mean 'SyntheticEngine'?"),
    ],
)
def test_a_wrong_word_is_answered_with_what_to_do(
    invoke: Invoke, finished: Path, words: list[str], fragment: str
) -> None:
    """One message, exit code 2, nothing changed."""
    before = query(finished, "SELECT * FROM study_user_attributes")
    result = invoke(*words, "--home", str(finished))
    assert result.exit_code == 2, result.output
    assert fragment in result.stderr
    assert query(finished, "SELECT * FROM study_user_attributes") == before


def test_a_second_study_says_what_it_starts_from(finished: Path, tmp_path: Path) -> None:
    """And starts from nothing where that is asked for."""
    from tests.support.command_line import ENGINE, SYNTHETIC

    home = copied(finished, tmp_path / "home")
    words = ("search", *SYNTHETIC, "--engine", ENGINE, "--budget", "2")
    assert "dead ends of earlier studies" in agent(*words, "--name", "next", home=home).stdout
    assert "dead ends of earlier studies" not in agent(*words, "--name", "new", "--no-inherit", home=home).stdout
