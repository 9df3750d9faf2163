"""Modelled failures as the agent classifies them, and studies of modelled nodes from the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.classify import classify
from agent.cli.main import main
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Exit, Phase, RunRecord
from runners.replay import answer
from search_spaces import NodeModel, RecordedNode, load_node, load_replayed, node_path, shipped_nodes
from search_spaces.failure_texts import TEXTS
from search_spaces.node_parts import PlantedFailure
from tests.support.command_line import Search, agent, environment, start_agent
from tests.support.small_node import request_for, small_data, small_node, written

STORY = "pcie8-blackwell-cuda128"
ALSO_RIGHT = {Reason.COLLECTIVE_ERROR: {Reason.CUDA_GRAPH_INCOMPATIBLE}}
"""Other reasons that people accept for a log of this one (a bare NCCL_ALGO=Tree dies while graphs are captured)."""
READ = [
    ("status",),
    ("status", "--json"),
    ("best",),
    ("best", "--json"),
    ("report",),
    ("deadends", "--all"),
    ("deadends", "--json"),
    ("explain", "#3", "--json"),
    ("explain", "p0"),
    ("sync",),
]
"""Commands that read a study."""
BASE = {"backend": "a", "draft": 2, "graph": 8, "expert": False}


def planted() -> Iterator[tuple[NodeModel, PlantedFailure]]:
    for name in shipped_nodes():
        node = load_node(name)
        for failure in node.file.failures:
            yield node, failure


PLANTED = [pytest.param(node, failure, id=f"{node.name}/{failure.name}") for node, failure in planted()]


def failure_of(log: tuple[str, ...], planted: PlantedFailure, folder: Path) -> Failure:
    path = folder / "engine.log"
    path.write_text("\n".join(log) + "\n", encoding="utf-8")
    end = planted.exit
    exit_ = Exit(code=end.code, signal=end.signal, cause=end.cause, requested=end.cause != "exited")
    outcome = classify(RunRecord(exit=exit_, phase=Phase(planted.phase), wall_s=1.0, log_path=str(path)))
    assert outcome.failure is not None
    return outcome.failure


@pytest.mark.parametrize(("node", "failure"), PLANTED)
def test_the_text_of_a_shipped_failure_alone_gives_its_reason(
    node: NodeModel, failure: PlantedFailure, tmp_path: Path
) -> None:
    """The lines are those of the real software: without the model's last line they are classified the same way."""
    reason = Reason(failure.reason)
    assert failure_of(failure.log, failure, tmp_path).reason in {reason, *ALSO_RIGHT.get(reason, ())}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.reason}-{text.phase}")
def test_every_text_of_the_generator_alone_gives_its_reason(text: object, tmp_path: Path) -> None:
    from search_spaces.failure_texts import FailureText

    assert isinstance(text, FailureText)
    lines = [line.format(rank=1, second=30, flag="--page-size", value=64) for line in text.lines]
    end = {"code": text.code, "signal": text.signal, "cause": text.cause}
    written = {"name": "x", "reason": text.reason, "phase": text.phase, "log": lines, "exit": end}
    failure = PlantedFailure.model_validate(written)
    assert failure_of(failure.log, failure, tmp_path).reason.value == text.reason


def judged(node: NodeModel, folder: Path, **changes: object) -> Failure:
    found = answer(node, request_for({**BASE, **changes}, folder))  # type: ignore[dict-item]
    return failure_of(found.log, node.file.failures[0], folder)


def with_failure(**changes: object) -> NodeModel:
    data = small_data()
    data["failures"] = [data["failures"][0] | changes]
    if "blames" in changes and changes["blames"] is None:
        del data["failures"][0]["blames"]
    return small_node(failures=data["failures"])


def test_the_planted_reason_decides_whatever_the_text_says(tmp_path: Path) -> None:
    node = with_failure(reason="assertion", log="torch.OutOfMemoryError: CUDA out of memory.")
    failure = judged(node, tmp_path, graph=64, expert=True)
    assert (failure.reason, failure.blames, failure.confidence) == (Reason.ASSERTION, ("graph",), 1.0)
    assert failure.decisive is not None and "CUDA out of memory" in failure.decisive.text


def test_blames_that_the_model_leaves_open_are_those_of_the_text(tmp_path: Path) -> None:
    text = "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.19 GiB."
    left_open = judged(with_failure(blames=None, log=text), tmp_path, graph=64, expert=True)
    assert left_open.blames == ("cuda_graph_max_bs",)
    assert left_open.rule.startswith("M") and "cuda_graph_max_bs" in left_open.cure
    nobody = judged(with_failure(blames=[], log=text), tmp_path, graph=64, expert=True)
    assert nobody.blames == ()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """A whole campaign on the story's node, through Ray: what would take hours of the node."""
    home = tmp_path_factory.mktemp("story") / "home"
    node = home.parent / "node.yaml"
    shutil.copyfile(node_path(STORY), node)
    words = ("search", "--engine", "replay", "--node", str(node), "--budget", "40")
    search = start_agent(*words, home=home)
    assert search.ended.returncode == 0, search.ended.stderr
    return search


def test_a_campaign_on_a_modelled_node_says_so_from_the_plan_to_the_result(story: Search) -> None:
    lines = story.ended.stdout.splitlines()
    assert lines[0].startswith(f"modelled node {STORY}: nothing is launched")
    assert f"  modelled node {STORY}: nothing was launched, every figure is the model's" in lines
    assert any("8x NVIDIA RTX PRO 6000 Blackwell, sm_120" in line for line in lines)


def test_a_campaign_of_hours_reports_the_hours_of_the_model(story: Search) -> None:
    status = json.loads(agent("status", "--json", home=story.home).stdout)
    assert status["spent"] == 40
    assert status["modelled"] == STORY
    assert 2 * 3600 < status["node_s"] < 12 * 3600
    assert status["outcomes"]["failed"] > 0


def test_reading_commands_say_that_the_node_is_modelled(story: Search) -> None:
    for command in ("status", "best"):
        assert f"modelled node {STORY}" in agent(command, home=story.home).stdout
    assert json.loads(agent("best", "--json", home=story.home).stdout)["modelled"] == STORY


def test_values_are_shown_as_the_engine_reads_them(story: Search, invoke: Callable[..., Result]) -> None:
    """NCCL_PROTO knows LL and no ll; what somebody types is found whatever its case."""
    for number in range(40):
        changes = json.loads(invoke("explain", str(number), "--json", "--home", str(story.home)).stdout)["changes"]
        shown = {f"{name}={value}" for name, value in changes.items() if str(value) != str(value).lower()}
        if shown:
            break
    assert shown
    text = invoke("explain", str(number), "--home", str(story.home)).stdout
    assert all(each in text for each in shown)
    wrong = invoke("try", "nccl_proto=x", "--home", str(story.home)).stderr
    assert "auto, allreduce:LL" in wrong


def test_the_map_of_the_campaign_holds_what_is_planted(story: Search) -> None:
    found = json.loads(agent("deadends", "--json", home=story.home).stdout)
    reasons = {each["reason"] for each in found}
    assert {"jit_compile_error", "unsupported_arch"} <= reasons


def test_a_stored_study_can_be_replayed_as_a_table(story: Search, tmp_path: Path) -> None:
    """What was recorded comes back: every launch and probe that says something, with reason and blames."""
    command = [sys.executable, "-m", "agent.recorded", "--home", str(story.home)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    table = tmp_path / "table.jsonl"
    table.write_text(done.stdout, encoding="utf-8")
    node = load_replayed(table)
    assert isinstance(node, RecordedNode)
    status = json.loads(agent("status", "--json", home=story.home).stdout)
    launches, outcomes = [trial for trial in node.trials if trial.rung == "full"], status["outcomes"]
    assert len(launches) == 40 - outcomes["slower"]  # what was stopped early measured a part of its load
    assert sum(trial.failure is not None for trial in launches) == outcomes["failed"]
    assert node.space.default_on(node.facts) == node.trials[0].assignment
    assert not any(line.startswith("[replay]") for trial in node.trials if trial.failure for line in trial.failure.log)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command in this process."""
    for name in ("AGENT_HOME", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words: CliRunner().invoke(main, list(words))


@pytest.fixture
def nodeless(story: Search) -> Iterator[Path]:
    """The campaign's home while its node model lies elsewhere."""
    node = story.home.parent / "node.yaml"
    aside = node.rename(node.with_suffix(".aside"))
    yield story.home
    aside.rename(node)


@pytest.mark.parametrize("words", READ, ids=" ".join)
def test_what_is_stored_is_read_without_the_node_model(
    invoke: Callable[..., Result], nodeless: Path, words: tuple[str, ...]
) -> None:
    """Word for word what is shown with it; only where a command is to be repeated it says what that would need."""
    without = invoke(*words, "--home", str(nodeless))
    node = nodeless.parent / "node.yaml"
    shutil.copyfile(node.with_suffix(".aside"), node)
    whole = invoke(*words, "--home", str(nodeless))
    assert (without.exit_code, whole.exit_code) == (0, 0), without.output
    assert without.stdout.removeprefix(whole.stdout).count(f"{node}: cannot be read") == (words == ("best",))
    assert without.stdout.startswith(whole.stdout)
    assert without.stderr.count(str(node)) == (words[0] == "report")


@pytest.mark.parametrize("words", [("resume", "--budget", "50"), ("try", "ep_size=8"), ("deadends", "--recheck")])
def test_what_would_ask_the_node_model_says_that_it_is_gone(
    invoke: Callable[..., Result], nodeless: Path, words: tuple[str, ...]
) -> None:
    """Before anything is written: which file, and what to do."""
    before = invoke("status", "--json", "--home", str(nodeless)).stdout
    result = invoke(*words, "--home", str(nodeless))
    assert result.exit_code == 2, result.output
    assert f"{nodeless.parent / 'node.yaml'}: cannot be read" in result.stderr
    assert "Put the file back" in result.stderr
    assert invoke("status", "--json", "--home", str(nodeless)).stdout == before


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (["--engine", "replay"], ["--engine", "add --node", STORY]),
        (["--node", STORY], ["--node", "add --engine replay"]),
        (["--engine", "replay", "--node", "pcie8"], ["--node pcie8", "no node model of that name"]),
        (["--engine", "replay", "--node", "missing.yaml"], ["missing.yaml", "cannot be read", STORY]),
        (["--engine", "replay", "--node", STORY, "--space", "torch"], ["--space", "the node model says"]),
        (["--engine", "replay", "--node", STORY, "--tp", "4"], ["--tp", "the node model says"]),
        (["--engine", "replay", "--node", STORY, "--pin", "allreduce=x"], ["--pin allreduce", "nccl, custom"]),
    ],
)
def test_a_wrong_option_is_named_with_its_remedy(
    invoke: Callable[..., Result], tmp_path: Path, words: list[str], fragments: list[str]
) -> None:
    result = invoke("search", *words, "--home", str(tmp_path / "home"))
    assert result.exit_code == 2, result.output
    assert not [fragment for fragment in fragments if fragment not in result.stderr], result.stderr
    assert not (tmp_path / "home").exists()


def test_a_reason_that_does_not_exist_is_named_with_its_line(invoke: Callable[..., Result], tmp_path: Path) -> None:
    data = small_data()
    data["failures"][0]["reason"] = "gpu_ooom"
    path = written(tmp_path, data)
    result = invoke("search", "--engine", "replay", "--node", str(path), "--home", str(tmp_path / "home"))
    assert result.exit_code == 2
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "gpu_ooom" in text)
    assert f"{path}:{line}: failures.0.reason: 'gpu_ooom' is no reason. Did you mean 'gpu_oom'?" in result.stderr
