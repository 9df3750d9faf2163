"""Trials and studies to mirror, made by hand, and a reader that gives back everything MLflow has of one."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.mirror import StudySnapshot
from agent.outcome import Failure, Outcome, OutcomeKind, OutputCheck
from agent.reasons import Policy, Reason
from agent.store.trial import Kind, Trial, Work
from runners import (
    Exit,
    Latency,
    LevelMeasurement,
    LogLine,
    Measurement,
    Phase,
    ProbeMeasurement,
    Rung,
    RunRecord,
    StoppedEarly,
)
from runners.goodput import Goodput
from tests.support.lives import dead_ends_of, two_failures
from tests.support.planted import small_space

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS = {"gpu_arch": "sm_90", "cuda": "13.0", "engine_version": "0.5.13", "packages": {"torch": "2.9"}, "links": "pcie"}
BASE = {"allreduce": "nccl", "draft_len": 0, "graphs": True}
SECRET = "hunter2-hunter2"  # noqa: S105 (what must not get out)


def record(*, phase: Phase = Phase.SERVE, **more: Any) -> RunRecord:
    argv = ("serve", "--model", "a model", "--api-key", SECRET)
    fields = {"exit": Exit(code=0), "phase": phase, "phase_s": {Phase.SPAWN: 1.5, phase: 2.5}, "wall_s": 4.25}
    return RunRecord(**{**fields, "argv": argv, "env": {"NCCL_ALGO": "Tree"}, "node": "n1", **more})


def measurement(scale: float = 1.0) -> Measurement:
    levels = tuple(
        LevelMeasurement(
            concurrency=concurrency,
            output_tok_per_s=100.0 * concurrency * scale,
            ttft_ms=Latency(p50=5.0, p99=9.0),
            tpot_ms=Latency(p50=10.0, p99=14.0),
            step_ms_p50=20.0,
            verify_steps_per_s=50.0,
            acceptance_length=2.5,
            acceptance_per_position=(0.9 / concurrency, 0.5 / concurrency),
            e2e_ms=Latency(p50=90.0, p99=120.0),
            requests_per_s=3.0 * concurrency,
            goodput=Goodput(
                requests_per_s=2.0 * concurrency, output_tok_per_s=60.0 * concurrency, within={"ttft_ms": 0.7}
            ),
            dropped_requests=2,
            dropped_s=0.4,
        )
        for concurrency in (8, 1)
    )
    return Measurement(levels=levels, collective_us_per_call=17.0, extra={"floor_ms": 0.5})


def trial(number: int, *, study: str = "s", kind: Kind = Kind.SEARCH, **more: Any) -> Trial:
    """A closed, measured trial, unless `more` says otherwise."""
    resolved = {**BASE, "draft_len": number}
    work = Work(kind=kind, rung=Rung.FULL, requested=resolved, resolved=resolved, stage="one change", base=BASE)
    started = START + timedelta(minutes=number)
    fields: dict[str, Any] = {
        "work": work,
        "started_at": started,
        "closed_at": started + timedelta(seconds=30),
        "outcome": Outcome(
            kind=OutcomeKind.MEASURED, value=280.0 + number, output=OutputCheck(agreement=1.0, needed=0.99)
        ),
        "record": record(measurement=measurement()),
        "facts": FACTS,
    }
    return Trial(study=study, number=number, cookie="c", lease=None, **{**fields, **more})


def failed(number: int, *, study: str = "s", **more: Any) -> Trial:
    failure = Failure(
        reason=Reason.UNSUPPORTED_ARCH,
        rule="A001",
        confidence=1.0,
        phase=Phase.CAPTURE_GRAPHS,
        decisive=LogLine(number=17, text=f"no kernel image for sm_90, HF_TOKEN={SECRET}"),
        blames=("allreduce",),
        policy=Policy.DEAD_AT_ONCE,
        cure="Use another backend.",
    )
    outcome = Outcome(kind=OutcomeKind.FAILED, failure=failure, note="seen twice")
    return trial(number, study=study, **{"outcome": outcome, "record": record(phase=Phase.CAPTURE_GRAPHS), **more})


def in_flight(number: int, *, study: str = "s") -> Trial:
    return trial(number, study=study, closed_at=None, outcome=None, record=None)


def rewritten(number: int, *, study: str = "s") -> Trial:
    work = trial(number).work.model_copy(update={"requested": {**BASE, "draft_len": 99}})
    return trial(number, study=study, work=work)


def refuting(item: Trial) -> Trial:
    """The trial as one that passed in what was confirmed."""
    (found,) = dead_ends_of(two_failures(small_space(), Reason.ASSERTION), small_space())
    assert item.outcome is not None
    return item.model_copy(update={"outcome": item.outcome.model_copy(update={"refutes": (found,)})})


def weighed(item: Trial) -> Trial:
    """The trial as one of a study with several goals."""
    assert item.outcome is not None
    figures = {"output_tok_per_s": 100.0, "tpot_ms_p50@8": 9.0}
    return item.model_copy(update={"outcome": item.outcome.model_copy(update={"figures": figures})})


def probe(number: int, *, study: str = "s") -> Trial:
    work = Work(kind=Kind.PROBE, rung=Rung.PROBE, requested=BASE, resolved=BASE)
    seen = record(probe=ProbeMeasurement(pass_us=900.0, calls_per_pass=122))
    outcome = Outcome(kind=OutcomeKind.MEASURED, value=900.0)
    return trial(number, study=f"{study}/probes", work=work, record=seen, outcome=outcome)


def with_files(item: Trial, folder: Path) -> Trial:
    """The trial with a log, stacks and a result on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "engine.log").write_text(f"starting\n--api-key {SECRET}\nsaid {SECRET}\nKeyError: 12\n")
    (folder / "stacks").write_text("Thread 1: all_reduce\n")
    (folder / "result.json").write_text('{"completed": 8}\n')
    assert item.record is not None
    paths = {"log_path": str(folder / "engine.log"), "stacks_path": str(folder / "stacks")}
    return item.model_copy(update={"record": item.record.model_copy(update=paths), "artifact_dir": str(folder)})


def snapshot(study: str, trials: tuple[Trial, ...], **more: Any) -> StudySnapshot:
    fields: dict[str, Any] = {
        "spec": {"engine": "torch", "workload": {"concurrency": [1, 8]}, "options": {"api_key": SECRET}},
        "facts": FACTS,
        "status": "finished",
        "started_at": START,
        "ended_at": START + timedelta(hours=1),
    }
    return StudySnapshot(study=study, trials=trials, **{**fields, **more})


def rich(study: str, folder: Path) -> StudySnapshot:
    """A study with one of everything that can be mirrored."""
    slower = Outcome(kind=OutcomeKind.SLOWER, value=40.0, note="stopped early")
    stopped = StoppedEarly(concurrency=8, requests=11, below=60.0, ceiling=50.0, estimate=40.0, saved_s=12.5)
    partial = record(measurement=Measurement(levels=(), stopped=stopped))
    interrupted = Outcome(kind=OutcomeKind.INTERRUPTED)
    trials = (
        with_files(trial(0, study=study, kind=Kind.BASELINE), folder / "0"),
        with_files(failed(1, study=study), folder / "1"),
        weighed(refuting(rewritten(2, study=study))),
        trial(3, study=study, outcome=slower, record=partial, epoch=1),
        trial(4, study=study, outcome=interrupted, record=None),
    )
    documents = {"dead_ends.json": "[]", "dead_ends.md": "# none", "dead_ends.html": "<p>", "report.md": "# Report"}
    more = {"documents": documents, "dead_ends": {1: ("D1", "D2")}, "best": 2, "gain": 1.25, "verdict": "gain"}
    more["interval"] = (1.1, 1.4)
    return snapshot(study, trials, probes=(probe(0, study=study),), **more)


def dump(client: Any, study: str) -> dict[str, dict[str, Any]]:
    """Everything that MLflow shows of a study, by trial, free of its own random ids and of the study's name."""
    experiment = client.get_experiment_by_name(study)
    runs = list(client.search_runs([experiment.experiment_id], max_results=1000))
    shown = {run.data.tags.get("agent.trial", "study"): _dump_run(client, run, study) for run in runs}
    assert len(shown) == len(runs), "two runs of one trial"
    return shown


def run_ids(client: Any, study: str) -> dict[str, str]:
    """MLflow's own id of every run of a study, by trial."""
    experiment = client.get_experiment_by_name(study)
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    return {run.data.tags.get("agent.trial", "study"): run.info.run_id for run in runs}


def _dump_run(client: Any, run: Any, study: str) -> dict[str, Any]:
    parent = run.data.tags.get("mlflow.parentRunId")
    tags = {k: v for k, v in run.data.tags.items() if k not in ("agent.mirrored", "mlflow.parentRunId")}
    return {
        "info": (run.info.status, run.info.start_time, run.info.end_time, run.info.run_name.replace(study, "S")),
        "parent": client.get_run(parent).data.tags.get("agent.trial", "study") if parent else None,
        "parent_is_active": client.get_run(parent).info.lifecycle_stage == "active" if parent else True,
        "tags": {name: value.replace(study, "S") for name, value in tags.items()},
        "params": run.data.params,
        "metrics": {
            name: sorted((m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, name))
            for name in run.data.metrics
        },
        "artifacts": artifacts(run, client),
    }


def artifacts(run: Any, client: Any = None) -> dict[str, str]:
    """Text of every artifact of a run, on a local disk or behind a server."""
    if not run.info.artifact_uri.startswith("file://") and client is not None:
        return _downloaded(run.info.run_id, client)
    root = Path(run.info.artifact_uri.removeprefix("file://"))
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def _downloaded(run_id: str, client: Any) -> dict[str, str]:
    if not client.list_artifacts(run_id):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(client.download_artifacts(run_id, "", folder))
        return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}
