"""Workload and objective as somebody writes them, and what is said about what cannot be served."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.asked_workload import asked_goals, asked_workload
from agent.errors import UsageError
from agent.goals import OUTPUT
from agent.spec import load_spec
from runners import Workload
from search_spaces import SpecificationError


def workload(**keys: object) -> Workload:
    spec = load_spec(None, {"engine": "vllm", **keys})
    return asked_workload(spec, asked_goals(spec))


def goals(**keys: object) -> list[str]:
    return [goal.name for goal in asked_goals(load_spec(None, {"engine": "vllm", **keys}))]


def test_without_a_word_everything_is_as_it_was() -> None:
    assert workload() == Workload()
    assert asked_goals(load_spec(None, {})) == (OUTPUT,)


def test_a_built_in_workload_has_its_name_and_no_lengths_of_the_study() -> None:
    assert workload(workload="chat").lengths == "chat"
    with pytest.raises(UsageError, match=r"--prompt-tokens: the workload chat has lengths of its own"):
        workload(workload="chat", prompt_tokens=5)


def test_a_file_is_found_checked_and_remembered_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "a"}\n')
    monkeypatch.chdir(tmp_path)
    found = workload(workload="prompts.jsonl", output_tokens=7)
    assert (found.dataset, len(found.dataset_sha256 or ""), found.output_tokens) == (str(path), 64, 7)
    path.write_text('{"prompt": "a"}\n{"prompt": 3}\n')
    with pytest.raises(UsageError, match=r"--workload: dataset: .*prompts.jsonl:2: prompt"):
        workload(workload="prompts.jsonl")
    with pytest.raises(UsageError, match=r"'caht' is neither a built-in workload nor a file.*Did you mean 'chat'"):
        workload(workload="caht")


def test_arrivals_need_one_level_the_most_in_flight() -> None:
    assert workload(arrival_rate=2.5).concurrency == (256,)
    assert workload(arrival_rate=2.5, concurrency=(32,)).arrival_per_s == 2.5
    with pytest.raises(UsageError, match=r"--concurrency: with arrival_rate name one level"):
        workload(arrival_rate=2.5, concurrency=(2, 4))


@pytest.mark.parametrize("engine", ["torch", "replay"])
@pytest.mark.parametrize("keys", [{"workload": "chat"}, {"arrival_rate": 1.0}])
def test_engines_with_prompts_of_their_own_say_so(engine: str, keys: dict[str, object]) -> None:
    spec = load_spec(None, {"engine": engine, **keys})
    with pytest.raises(UsageError, match=f"the {engine} engine makes its own prompts .* or search a server"):
        asked_workload(spec, (OUTPUT,))


def test_limits_are_read_with_and_without_a_percentile(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("engine: vllm\nslo:\n  ttft_ms: {p99: 500, p50: 100}\n  e2e_ms: 9000\n")
    spec = load_spec(path, {})
    found = asked_workload(spec, asked_goals(spec)).slo
    assert [(limit.name, limit.at_most) for limit in found] == [
        ("ttft_ms.p99", 500),
        ("ttft_ms.p50", 100),
        ("e2e_ms", 9000),
    ]
    assert [goal.name for goal in asked_goals(spec)] == ["goodput_tok_per_s"]


@pytest.mark.parametrize(
    ("slo", "problem"),
    [
        ("{ttf_ms: 5}", r"study.yaml:2: slo.ttf_ms: is no limit. Did you mean 'ttft_ms'"),
        ("{ttft_ms: {p: 5}}", r"slo.ttft_ms: 'p' is no percentile: write p50"),
        ("{ttft_ms: {p0: 5}}", r"slo.ttft_ms: 'p0' is no percentile"),
        ("{ttft_ms: {p99: -5}}", r"slo.ttft_ms: -5 is no limit: milliseconds above 0"),
    ],
)
def test_a_wrong_limit_is_answered_with_its_line(slo: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(f"engine: vllm\nslo: {slo}\n")
    spec = load_spec(path, {})
    with pytest.raises(SpecificationError, match=problem):
        asked_workload(spec, (OUTPUT,))


def test_the_level_of_a_single_goal_is_measured_first() -> None:
    assert workload(objective="output_tok_per_s@1").levels == (1, 8)
    assert workload(objective=("output_tok_per_s@1", "tpot_ms_p50@8")).levels == (8, 1)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"objective": "speed"}, "'speed' is no objective"),
        ({"objective": "output_tok_per_s@3"}, "3 is none of the levels of concurrency"),
        ({"objective": "goodput_req_per_s"}, "needs limits: add slo, such as `ttft_ms: {p99: 500}`"),
        ({"objective": "tpot_ms_p50"}, "alone is best with an engine that serves nobody"),
        ({"objective": "output_tok_per_s", "slo": {"ttft_ms": 5.0}}, "alone does not heed slo"),
        ({"objective": ("tpot_ms_p50", "tpot_ms_p50")}, "named twice"),
    ],
)
def test_a_wrong_objective_is_answered(keys: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        goals(**keys)
    assert problem in str(caught.value)
