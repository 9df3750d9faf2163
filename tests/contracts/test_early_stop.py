"""What every runner that can watch its requests promises of a load that may end early."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import OutcomeKind
from runners import EngineSettings, Rung, Runner, RunRecord, StopRule, TrialRequest, Workload
from runners.load_client import LoadJob, measurement_of, run_load
from runners.replay_runner import ReplayRunner
from runners.torch_runner import TorchRunner
from search_spaces import load_space
from tests.support.stub_servers import stub_server

SPACE = load_space("torch")
WORKS = SPACE.normalise(SPACE.default_on({"device": "cpu"}), {"device": "cpu"})
NODE_MODEL = str(Path(__file__).parents[1] / "support" / "torch_node.yaml")
WORKLOAD = Workload(concurrency=(1, 2), requests=12, output_tokens=8)
HOPELESS = StopRule(below=1e9, hopes={1: 1e6, 2: 1e6})
"""A bar that no engine reaches."""
EASY = StopRule(below=1e-3, hopes={1: 1e6, 2: 1e6})


@pytest.fixture(params=[TorchRunner, ReplayRunner], ids=lambda runner: runner.__name__)
def runner(request: pytest.FixtureRequest) -> Runner:
    """Every runner that watches its requests itself."""
    made: Runner = request.param()
    return made


def run(runner: Runner, folder: Path, stop: StopRule | None, workload: Workload = WORKLOAD) -> RunRecord:
    return runner.run(
        TrialRequest(
            study="contract",
            trial=0,
            rung=Rung.FULL,
            settings=EngineSettings(
                engine="any", num_ranks=2, device="cpu", options={"preset": "tiny"}, node_model=NODE_MODEL
            ),
            assignment=WORKS,
            options=SPACE.options(WORKS),
            variables=SPACE.environment(WORKS),
            workload=workload,
            stop=stop,
            cookie=f"contract-{os.getpid()}-{folder.name}",
            environment=dict(os.environ),
            artifact_dir=str(folder),
        )
    )


def test_a_hopeless_load_ends_in_its_first_level(runner: Runner, tmp_path: Path) -> None:
    """The highest level comes first; what is left out is said, and the launch counts as slower and not as failed."""
    record = run(runner, tmp_path, HOPELESS)
    assert record.measurement is not None and record.measurement.stopped is not None
    stopped = record.measurement.stopped
    assert (stopped.concurrency, [level.concurrency for level in record.measurement.levels]) == (2, [2])
    assert 4 <= stopped.requests < 12
    assert 0 < stopped.estimate <= stopped.ceiling < stopped.below == HOPELESS.below
    assert stopped.saved_s > 0
    assert record.measurement.outputs == ()
    assert record.leftovers.is_clean
    outcome = classify(record)
    assert (outcome.kind, outcome.value, outcome.failure) == (OutcomeKind.SLOWER, stopped.estimate, None)


def test_a_load_that_is_good_enough_is_served_whole(runner: Runner, tmp_path: Path) -> None:
    record = run(runner, tmp_path, EASY)
    assert record.measurement is not None and record.measurement.stopped is None
    assert [level.concurrency for level in record.measurement.levels] == [1, 2]
    assert len(record.measurement.outputs) > 0
    assert classify(record).kind is OutcomeKind.MEASURED


def test_the_level_that_the_objective_is_about_comes_first(runner: Runner, tmp_path: Path) -> None:
    """Then nothing else is measured of what is slower there."""
    only_one = HOPELESS.model_copy(update={"hopes": {1: 1e6}})
    record = run(runner, tmp_path, only_one, WORKLOAD.model_copy(update={"first": 1}))
    assert record.measurement is not None and record.measurement.stopped is not None
    assert record.measurement.stopped.concurrency == 1
    assert [level.concurrency for level in record.measurement.levels] == [1]


@pytest.mark.parametrize("api", ["openai", "sglang"])
def test_the_load_client_sends_no_more_than_it_needs(api: str, tmp_path: Path) -> None:
    """What is in flight is given up, and the server goes on serving others."""
    path = tmp_path / "requests.jsonl"
    with stub_server(metrics="vllm" if api == "openai" else "sglang") as server:
        fields = {"base_url": server.base_url, "api": api, "model": "stub", "workload": WORKLOAD}
        result = run_load(LoadJob.model_validate({**fields, "stop": HOPELESS, "records_path": str(path)}))
        whole = run_load(LoadJob.model_validate({**fields, "stop": EASY}))
    assert result.problem is None and result.stopped is not None
    assert [level.concurrency for level in result.levels] == [2]
    served = result.levels[0].num_requests
    assert served == len(path.read_text().splitlines())
    assert 0 <= served - result.stopped.requests < 2, "what is in flight beside the last one may just have been served"
    measured = measurement_of(result)
    assert measured.stopped == result.stopped and measured.outputs == ()
    share = served / result.stopped.requests
    assert 0 < measured.levels[0].output_tok_per_s <= result.stopped.estimate * share * (1 + 1e-9)
    assert whole.stopped is None and [level.num_requests for level in whole.levels] == [12, 12]


def test_a_replayed_load_that_is_served_whole_measures_what_it_would_have_unwatched(tmp_path: Path) -> None:
    """Watching changes no figure, so a resumed study may watch what an earlier one did not."""
    unwatched, watched = (run(ReplayRunner(), tmp_path, stop) for stop in (None, EASY))
    assert watched == unwatched
    stopped = run(ReplayRunner(), tmp_path, HOPELESS)
    assert stopped.measurement is not None and stopped.measurement.stopped is not None
    assert stopped.wall_s + stopped.measurement.stopped.saved_s == pytest.approx(unwatched.wall_s)
