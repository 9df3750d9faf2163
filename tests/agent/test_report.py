"""The end of a study in words: the command can be pasted, and no gain is claimed that was not measured."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from agent.deadends.atlas import Atlas
from agent.report import as_report, command_line, documents, headline
from agent.summary import StudySummary

NOTHING = StudySummary(
    study="study",
    budget=20,
    spent=6,
    outcomes={"measured": 0, "failed": 6, "slower": 0, "interrupted": 0},
    num_probes=2,
    node_s=61.4,
    baseline=None,
    best=None,
    atlas=Atlas(()),
    ruled_out={},
    default={"draft_length": 3},
)


@pytest.mark.parametrize("word", ["plain", "two words", "it's", '"quoted"', "$HOME;rm", "^LL128", "a\nb", ""])
def test_a_command_reads_the_same_in_a_shell(word: str) -> None:
    """What is printed can be pasted: a shell splits it into exactly the arguments of the launch."""
    line = command_line(("serve", word), {"NCCL_ALGO": word})
    assert shlex.split(line) == [f"NCCL_ALGO={word}", "serve", word]


def test_variables_stand_in_a_fixed_order_before_the_command() -> None:
    """Two equal launches have equal lines."""
    assert command_line(("serve",), {"B": "2", "A": "1"}) == command_line(("serve",), {"A": "1", "B": "2"})
    assert command_line(("serve",), {"B": "2", "A": "1"}) == "A=1 B=2 serve"


def test_without_a_measurement_no_best_and_no_gain_are_stated() -> None:
    """A study in which nothing worked says just that."""
    counts, *rest = headline(NOTHING)
    assert counts == "6 of 20 launches closed: 0 measured, 6 failed; 2 probes; 61 s of node time"
    assert rest == ["nothing was measured"]


def test_a_report_without_a_best_has_no_command() -> None:
    """No command that repeats nothing."""
    assert "command" not in as_report(NOTHING, None)
    assert "    serve --fast" in as_report(NOTHING, "serve --fast").splitlines()


def test_one_launch_is_said_in_the_singular() -> None:
    """Sentences are read by people."""
    assert headline(replace(NOTHING, spent=1, budget=1))[0].startswith("1 of 1 launch")


def test_the_documents_of_a_study_are_these() -> None:
    """Names of artifacts are a promise to whoever links to them."""
    assert sorted(documents(NOTHING, None)) == ["dead_ends.html", "dead_ends.json", "dead_ends.md", "report.md"]
