"""A stored trial decides every word of its run."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.mirror import run_of, study_run_of
from agent.mirror.values import clean_name, metric, plain, shorten
from agent.store.trial import Kind
from tests.agent.mirror.samples import SECRET, failed, in_flight, probe, rewritten, rich, snapshot, trial


def test_a_failure_is_told_in_tags() -> None:
    tags = run_of(failed(12), ("D1", "D2")).tags
    assert tags["reason"] == "unsupported_arch"
    assert tags["phase"] == "capture_graphs"
    assert tags["dead_end"] == "D1, D2"
    assert tags["decisive_line"] == "17: no kernel image for sm_90, HF_TOKEN=***"
    scope = {name: value for name, value in tags.items() if name.startswith("scope.")}
    assert scope == {
        "scope.gpu_arch": "sm_90",
        "scope.cuda": "13.0",
        "scope.engine_version": "0.5.13",
        "scope.packages": '{"torch": "2.9"}',
    }


def test_the_description_has_reason_line_and_cure() -> None:
    note = run_of(failed(12)).tags["mlflow.note.content"]
    assert "**unsupported_arch** in capture_graphs" in note
    assert "\n    17: no kernel image" in note
    assert note.endswith("Cure: Use another backend.")


def test_the_name_says_number_kind_and_change() -> None:
    assert run_of(trial(12)).name == "#12 search draft_len=12"
    work = trial(12).work.model_copy(update={"kind": Kind.REPEAT, "repeat": 2, "base": None})
    assert run_of(trial(13, work=work)).name == "#13 repeat ×3"


def test_a_requested_value_is_shown_only_where_it_was_replaced() -> None:
    params = run_of(rewritten(2)).params
    assert params == {"allreduce": "nccl", "draft_len": "2", "graphs": "true", "requested.draft_len": "99"}


def test_a_trial_in_flight_has_tags_only() -> None:
    run = run_of(in_flight(0))
    assert (run.status, run.end_ms, run.is_bare) == ("RUNNING", None, True)
    abandoned = run_of(in_flight(0), abandoned_at=trial(0).closed_at)
    assert (abandoned.status, abandoned.is_bare) == ("KILLED", False)


def test_equal_trials_have_equal_digests_and_any_difference_shows(tmp_path: Path) -> None:
    digest = run_of(trial(0)).digest
    assert run_of(trial(0)).digest == digest
    late = trial(0).started_at + timedelta(seconds=31)
    others = [trial(1), failed(0), in_flight(0), trial(0, closed_at=late), trial(0, facts={})]
    assert len({digest, run_of(trial(0), ("D1",)).digest, *(run_of(other).digest for other in others)}) == 7


def test_a_moved_state_folder_changes_nothing() -> None:
    here, there = (trial(0, record=trial(0).record.model_copy(update={"log_path": p})) for p in ("/a/log", "/b/log"))
    assert run_of(here).digest == run_of(there).digest


def test_the_command_is_quoted_and_masked() -> None:
    run = run_of(trial(0))
    assert run.texts["command.txt"] == "NCCL_ALGO=Tree serve --model 'a model' --api-key '***'\n"
    assert json.loads(run.texts["command.json"])["argv"][-1] == "***"
    assert SECRET not in repr((run.tags, run.params, run.texts))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_what_no_chart_can_show_is_not_logged(value: Any) -> None:
    assert metric("m", value) == []


@pytest.mark.parametrize(
    ("name", "clean"),
    [("a=b", "a_b"), ("a/b", "a/b"), ("../a", "_a"), ("/a", "_a"), ("a//b", "a__b"), ("x" * 300, "x" * 250)],
)
def test_names_are_made_acceptable(name: str, clean: str) -> None:
    assert clean_name(name) == clean


def test_values_read_as_written() -> None:
    values: list[object] = ["nccl", "", True, 3, 0.5, [1, 8]]
    assert [plain(value) for value in values] == ["nccl", '""', "true", "3", "0.5", "[1, 8]"]
    assert shorten("abcdef", 4) == "abc…"


def test_the_study_carries_best_counts_and_documents(tmp_path: Path) -> None:
    run = study_run_of(rich("s", tmp_path))
    assert run.tags["best.trial"] == "2"
    assert run.tags["best.gain"] == "1.2500"
    assert run.tags["count.measured"] == "2"
    assert run.tags["count.probes"] == "1"
    assert run.tags["fact.packages.torch"] == "2.9"
    assert run.tags["best.draft_len"] == "2"
    assert run.params["spec.options.api_key"] == "***"
    assert {"dead_ends.json", "dead_ends.md", "dead_ends.html", "report.md"} < run.texts.keys()
    table = json.loads(run.texts["probes.json"])
    assert dict(zip(table["columns"], table["data"][0], strict=True))["pass_us"] == 900.0


def test_a_running_study_has_no_verdict_in_params_or_metrics(tmp_path: Path) -> None:
    run = study_run_of(snapshot("s", (trial(0),), status="running", best=0, gain=1.1))
    assert (run.status, run.end_ms, run.metrics) == ("RUNNING", None, ())
    assert run.tags["best.trial"] == "0"


def test_a_study_that_was_killed_ends_with_the_last_that_is_known_of_it() -> None:
    run = study_run_of(snapshot("s", (trial(3), in_flight(1)), status="interrupted", ended_at=None))
    assert run.status == "KILLED"
    assert run.end_ms == run_of(trial(3)).end_ms


def test_a_probe_in_flight_is_a_row_too() -> None:
    open_probe = probe(0).model_copy(update={"closed_at": None, "outcome": None, "record": None})
    table = json.loads(study_run_of(snapshot("s", (), probes=(open_probe,))).texts["probes.json"])
    assert table["data"][0][3:8] == ["", None, "", "", None]
