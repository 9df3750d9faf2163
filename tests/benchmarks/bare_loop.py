"""The bare loop: Optuna's ask and tell on SQLite, and MLflow's client, storing what the agent stores; nothing else."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import mlflow
import optuna
from mlflow.entities import Metric, Param, RunTag

from agent.mirror.runs import run_of
from agent.outcome import Outcome, OutcomeKind
from agent.recovery import own_lease
from agent.store.distributions import distributions_of
from agent.store.stored_trial import trial_of
from agent.store.trial import Kind, Work
from runners import Deadlines, EngineSettings, Rung, TrialRequest, Workload
from search_spaces import load_space
from tests.support.synthetic_engine import SyntheticEngine

ROOT = Path(__file__).parents[2]


def main(folder: Path, trials: int) -> None:
    """Run that many trials."""
    folder.mkdir(parents=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = load_space(str(ROOT / "tests" / "support" / "wide_space.yaml"))
    distributions, engine, lease = distributions_of(space), SyntheticEngine(), own_lease()
    study = optuna.create_study(
        storage=f"sqlite:///{folder}/study.db",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0, multivariate=True),
    )
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    experiment = client.create_experiment("bare", artifact_location=str(folder / "artifacts"))
    for _ in range(trials):
        trial = study.ask(distributions)
        assignment = space.normalise(trial.params, {})
        work = Work(kind=Kind.SEARCH, rung=Rung.FULL, requested=assignment, resolved=assignment)
        record = engine.run(_request(trial.number, assignment, folder))
        assert record.measurement is not None
        value = record.measurement.levels[0].output_tok_per_s
        outcome = Outcome(kind=OutcomeKind.MEASURED, value=value)
        trial.set_user_attr("work", work.model_dump(mode="json"))
        launch = {"cookie": "0" * 32, "lease": lease.model_dump(mode="json"), "artifact_dir": str(folder)}
        trial.set_user_attr("launch", launch)
        trial.set_user_attr("record", record.model_dump(mode="json"))
        trial.set_user_attr("outcome", outcome.model_dump(mode="json"))
        study.tell(trial, value)
        _log(client, experiment, study._storage.get_trial(trial._trial_id))


def _request(number: int, assignment: dict[str, bool | int | float | str], folder: Path) -> TrialRequest:
    return TrialRequest(
        study="bare",
        trial=number,
        rung=Rung.FULL,
        settings=EngineSettings(engine="synthetic", num_ranks=2, device="cpu"),
        assignment=assignment,
        workload=Workload(),
        deadlines=Deadlines(),
        cookie="0" * 32,
        environment={},
        artifact_dir=str(folder / str(number)),
    )


def _log(client: mlflow.MlflowClient, experiment: str, trial: optuna.trial.FrozenTrial) -> None:
    """Log one run: the same names and values as the mirror's, in as few calls as the client's own interface allows."""
    run = run_of(trial_of("bare", trial))
    run_id = client.create_run(experiment, start_time=run.start_ms, run_name=run.name).info.run_id
    metrics = [Metric(point.name, point.value, run.start_ms, point.step) for point in run.metrics]
    params = [Param(name, value) for name, value in run.params.items()]
    client.log_batch(run_id, metrics=metrics, params=params, tags=[RunTag(*tag) for tag in run.tags.items()])
    with tempfile.TemporaryDirectory() as staging:
        for name, text in run.texts.items():
            Path(staging, Path(name).name).write_text(text, encoding="utf-8")
        client.log_artifacts(run_id, staging)
    client.set_terminated(run_id, run.status, run.end_ms)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
