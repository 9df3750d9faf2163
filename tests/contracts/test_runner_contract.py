"""The runner's contract: one body for every runner. Evidence comes back whatever the engine does, and nothing stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import OutcomeKind
from agent.reasons import Reason
from runners import EngineSettings, Rung, Runner, RunRecord, TrialRequest, Workload
from runners.cookies import find_processes
from runners.replay_runner import ReplayRunner
from runners.rungs import rungs_of
from runners.torch_runner import TorchRunner
from search_spaces import Assignment, load_space
from tests.support.synthetic_engine import ProcessSyntheticEngine, SyntheticEngine

SPACE = load_space("torch")
FACTS = {"device": "cpu"}
WORKS = SPACE.normalise(SPACE.default_on(FACTS), FACTS)
FAILS = {**WORKS, "allreduce": "nccl"}
NODE_MODEL = str(Path(__file__).parents[1] / "support" / "torch_node.yaml")

without_nccl = pytest.mark.skipif("os.path.exists('/dev/nvidia0')", reason="NCCL may work where there is a GPU")


@pytest.fixture(
    params=[TorchRunner, ReplayRunner, SyntheticEngine, ProcessSyntheticEngine], ids=lambda runner: runner.__name__
)
def runner(request: pytest.FixtureRequest) -> Runner:
    """Every runner there is."""
    made: Runner = request.param()
    assert type(made) is request.param
    return made


def request_for(assignment: Assignment, folder: Path, rung: Rung = Rung.FULL, trial: int = 0) -> TrialRequest:
    """Return a request for the smallest launch there is."""
    return TrialRequest(
        study="contract",
        trial=trial,
        rung=rung,
        settings=EngineSettings(
            engine="any", num_ranks=2, device="cpu", options={"preset": "tiny"}, node_model=NODE_MODEL
        ),
        assignment=assignment,
        options=SPACE.options(assignment),
        variables=SPACE.environment(assignment),
        workload=Workload(concurrency=(1, 2)),
        cookie=f"contract-{os.getpid()}-{folder.name}-{trial}",
        environment=dict(os.environ),
        artifact_dir=str(folder / str(trial)),
    )


def test_a_launch_that_works_is_measured_at_every_level_and_leaves_nothing(runner: Runner, tmp_path: Path) -> None:
    """Measured, clean, and complete enough to be classified."""
    request = request_for(WORKS, tmp_path)
    record = runner.run(request)
    assert record.measurement is not None
    assert [level.concurrency for level in record.measurement.levels] == [1, 2]
    assert classify(record).kind is OutcomeKind.MEASURED
    assert record.leftovers.is_clean
    assert find_processes(request.cookie) == []


@without_nccl
def test_a_launch_that_fails_is_evidence_and_no_exception(runner: Runner, tmp_path: Path) -> None:
    """The record has the log, and the classifier finds the reason and the parameter in it."""
    record = runner.run(request_for(FAILS, tmp_path))
    assert record.measurement is None
    failure = classify(record).failure
    assert failure is not None
    assert failure.reason is Reason.MISSING_DEPENDENCY
    assert "allreduce" in failure.blames
    assert failure.decisive is not None and failure.decisive.number > 0


@without_nccl
def test_a_batch_of_probes_gives_one_record_a_request_in_order(runner: Runner, tmp_path: Path) -> None:
    """A probe that fails does not take the others with it."""
    points = [WORKS, FAILS, {**WORKS, "allreduce": "all_gather_local_sum"}]
    requests = [request_for(point, tmp_path, Rung.PROBE, number) for number, point in enumerate(points)]
    records = runner.run_probes(requests)
    assert [classify(record).kind for record in records] == [
        OutcomeKind.MEASURED,
        OutcomeKind.FAILED,
        OutcomeKind.MEASURED,
    ]
    assert all(record.probe is None or record.probe.pass_us > 0 for record in records)


def test_a_record_survives_its_way_through_json(runner: Runner, tmp_path: Path) -> None:
    """Records cross processes and the storage as JSON, and come back equal."""
    record = runner.run(request_for(WORKS, tmp_path))
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_resolving_twice_changes_nothing(runner: Runner) -> None:
    """What an engine would run is what it would run: a resolved assignment resolves to itself."""
    settings = EngineSettings(engine="any", num_ranks=1, device="cpu", node_model=NODE_MODEL)
    first = runner.resolve({**WORKS, "expert_parallel": True}, settings, FACTS)
    assert runner.resolve(first.assignment, settings, FACTS).assignment == first.assignment
    assert {rewrite.parameter for rewrite in first.rewrites} == {
        name for name, value in first.assignment.items() if value != {**WORKS, "expert_parallel": True}[name]
    }


@without_nccl
def test_every_rung_tells_what_works_from_what_does_not(runner: Runner, tmp_path: Path) -> None:
    """Those without figures say that they passed; none but the top measures a load."""
    settings = request_for(WORKS, tmp_path).settings
    rungs = rungs_of(runner, settings)
    assert rungs == tuple(sorted(rungs, key=list(Rung).index))
    assert rungs[-1] is Rung.FULL
    for number, rung in enumerate(rungs):
        requests = [
            request_for(point, tmp_path, rung, 2 * number + index) for index, point in enumerate((WORKS, FAILS))
        ]
        passed, failed = runner.run_probes(requests) if rung is Rung.PROBE else map(runner.run, requests)
        assert classify(passed).kind is OutcomeKind.MEASURED
        assert classify(failed).kind is OutcomeKind.FAILED
        assert (passed.measurement is not None) == (rung is Rung.FULL)
        assert passed.passed == (rung in (Rung.RESOLVE, Rung.DUMMY))
        assert not failed.passed
