"""The end of a study in words: the command can be pasted, and no gain is claimed that was not measured."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from agent.deadends.atlas import Atlas
from agent.report import NO_BEST, as_report, command_line, documents, headline, reproduce_command
from agent.store.trial import Trial
from agent.summary import StudySummary
from runners import Command, EffectProof, Exit, Phase, Rung, RunRecord, TrialRequest
from runners.engine_dialects import EngineNotUsableError
from tests.support.planted import PlantedRunner
from tests.support.simulated_study import LEASE, START
from tests.support.stores import manifest, work

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


def test_a_study_that_stops_at_a_cheaper_rung_does_not_say_that_nothing_worked() -> None:
    """It was asked to launch nothing in full: no launch failed, and none is missing from its budget."""
    none = dict.fromkeys(NOTHING.outcomes, 0)
    lines = headline(replace(NOTHING, spent=0, outcomes=none, stops_at=Rung.PROBE))
    assert lines == [
        "the study stops at the probe rung: nothing was launched in full; 2 probes; 61 s of node time",
        NO_BEST,
    ]


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


def test_a_secret_variable_is_taken_from_the_shell_and_a_secret_argument_is_masked() -> None:
    """The line is pasted into chats and tickets; where it is run, the variable is set already."""
    line = command_line(("serve", "--api-key", "sesame"), {"HF_TOKEN": "abc", "PROXY": "http://u:pw@h"})
    assert line == """HF_TOKEN="$HF_TOKEN" PROXY='http://u:***@h' serve --api-key '***'"""


def test_simulated_acceptance_is_said_before_any_figure() -> None:
    """Nobody takes a made-up gain for one."""
    assert "acceptance is simulated, 2.5 tokens" in headline(replace(NOTHING, simulated_acceptance=2.5))[1]
    assert not [line for line in headline(NOTHING) if "simulated" in line]


def test_what_was_not_proven_has_a_place_in_the_report() -> None:
    """With the reason; without such a parameter there is no such heading."""
    report = as_report(replace(NOTHING, unproven={"nccl_algo": "no launch showed the proof"}), None)
    assert "## Not proven to take effect\n\n- `nccl_algo`: no launch showed the proof" in report
    assert "Not proven" not in as_report(NOTHING, None)


class Gone(PlantedRunner):
    """An engine that was uninstalled after the study."""

    def command(self, request: TrialRequest) -> Command:
        """Raise."""
        raise EngineNotUsableError("no such engine")


def test_the_line_that_was_launched_stands_in_where_the_engine_is_gone() -> None:
    """A result is read for longer than its engine is installed."""
    record = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, argv=("serve", "x"), env={"A": "1"})
    ran = Trial(study="study", number=0, work=work(), cookie="c", lease=LEASE, started_at=START, record=record)
    assert reproduce_command(Gone(), ran, manifest()) == "A=1 serve x"


def test_what_was_replaced_is_told_once_with_the_trials_that_show_it() -> None:
    """Also a replacement by something that the space has no name for."""
    proof = EffectProof(parameter="backend", requested="ring", effective="quick", evidence="line 7: quick")
    record = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, effects=(proof,))
    trials = tuple(
        Trial(study="s", number=number, work=work(), cookie="c", lease=LEASE, started_at=START, record=record)
        for number in (3, 5)
    )
    report = as_report(replace(NOTHING, replaced=trials), None)
    assert (
        "## What the engine replaced\n\n- `backend=ring` ran as `quick` in #3 #5: observed: line 7: quick\n" in report
    )
