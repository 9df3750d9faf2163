"""The part of MLflow's client that the mirror uses, how to get one, and its errors as one of ours."""

from __future__ import annotations

import importlib.util
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from agent.mirror.new_store import create_sqlite_store
from agent.redaction import redact_text, redact_url

_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Set in this process unless the user set them: a server that is down must cost seconds, not MLflow's minutes."""
_PATIENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "60", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3"}
"""The same where somebody waits for MLflow to be made equal, whatever it takes."""
_NOISY = ("mlflow.store.db.utils", "mlflow.utils.rest_utils", "alembic", "urllib3.connectionpool")
_REFUSED = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST"})


def wait_for_slow_servers() -> None:
    """Let calls take long from now on: a repair has time, unlike a search. What the user set stays.

    A search in this process, or one that started it, may have set its own short limits already.
    """
    for name, value in _PATIENT.items():
        if os.environ.get(name) in (None, _DEFAULTS[name]):
            os.environ[name] = value


class MirrorError(Exception):
    """MLflow could not be read or written; `is_transient` is False when trying again cannot help."""

    def __init__(self, message: str, *, is_transient: bool = True) -> None:
        super().__init__(message)
        self.is_transient = is_transient


class TrackingClient(Protocol):
    """What the mirror needs of `mlflow.MlflowClient`; the entities stay MLflow's own."""

    def get_experiment_by_name(self, name: str) -> Any:
        """Return the experiment, deleted or not, or None."""

    def create_experiment(self, name: str, artifact_location: str | None, tags: dict[str, str]) -> str:
        """Create an experiment and return its id."""

    def restore_experiment(self, experiment_id: str) -> None:
        """Take a deleted experiment out of the bin."""

    def set_experiment_tag(self, experiment_id: str, key: str, value: str) -> None:
        """Set a tag of an experiment."""

    def search_runs(
        self,
        experiment_ids: list[str],
        *,
        max_results: int,
        order_by: list[str] | None,
        page_token: str | None,
    ) -> Any:
        """Return one page of runs; its `token` leads to the next."""

    def create_run(self, experiment_id: str, start_time: int, tags: dict[str, str], run_name: str) -> Any:
        """Create a run with tags and return it."""

    def log_batch(self, run_id: str, metrics: Sequence[Any], params: Sequence[Any], tags: Sequence[Any]) -> object:
        """Log metrics, params and tags in one transaction."""

    def log_artifacts(self, run_id: str, local_dir: str) -> None:
        """Upload a folder."""

    def set_terminated(self, run_id: str, status: str, end_time: int) -> None:
        """Close a run."""

    def update_run(self, run_id: str, status: str) -> None:
        """Change a run's status only."""

    def delete_tag(self, run_id: str, key: str) -> None:
        """Remove a tag."""

    def delete_run(self, run_id: str) -> None:
        """Move a run to the bin."""


def connect(tracking_uri: str) -> TrackingClient:
    """Return MLflow's client for the address. A new SQLite store is created here, which takes seconds."""
    spec = importlib.util.find_spec("mlflow")
    if spec is None or spec.origin is None:  # the repository's own folder mlflow/ is importable, and empty
        raise MirrorError("MLflow is not installed: pip install mlflow", is_transient=False)
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    for logger in _NOISY:
        logging.getLogger(logger).setLevel(logging.ERROR)
    if tracking_uri.startswith("sqlite:///"):
        create_sqlite_store(Path(urlsplit(tracking_uri).path.removeprefix("/")))
    from mlflow import MlflowClient

    client: TrackingClient = MlflowClient(tracking_uri=tracking_uri)
    return client


@contextmanager
def translated_errors(tracking_uri: str) -> Iterator[None]:
    """Turn what MLflow, its database layer, HTTP and the disk raise into a MirrorError with a short text."""
    try:
        yield
    except MirrorError:
        raise
    except ImportError as error:  # a database driver that is not installed
        raise MirrorError(f"MLflow at {redact_url(tracking_uri)}: {error}", is_transient=False) from error
    except _foreign_errors() as error:
        code = getattr(error, "error_code", "")
        first_line = redact_text(str(error).strip().partition("\n")[0])[:300]
        text = f"MLflow at {redact_url(tracking_uri)}: {first_line or type(error).__name__}"
        raise MirrorError(text, is_transient=code not in _REFUSED) from error


def log_artifacts(client: TrackingClient, run_id: str, folder: str) -> None:
    """Upload a folder.

    MLflow keeps an object with a pool of threads for each of the last thousand runs that it uploaded to (seen on
    3.17); a study uploads to each run once, so it goes.
    """
    from mlflow.tracking._tracking_service import utils

    client.log_artifacts(run_id, folder)
    getattr(utils, "_artifact_repos_cache", {}).pop(run_id, None)


def log_batch(
    client: TrackingClient,
    run_id: str,
    *,
    params: Mapping[str, str],
    metrics: Sequence[tuple[str, float, int]],
    timestamp_ms: int,
    tags: Mapping[str, str],
) -> None:
    """Log everything in as few calls as the limits allow (nearly always one); the last tags go last."""
    from mlflow.entities import Metric, Param, RunTag

    param_rows = [Param(name, value) for name, value in params.items()]
    metric_rows = [Metric(name, value, timestamp_ms, step) for name, value, step in metrics]
    tag_rows = [RunTag(name, value) for name, value in tags.items()]
    while len(tag_rows) > _BATCH or len(param_rows) > _BATCH or len(metric_rows) > _METRIC_BATCH:
        early = max(len(tag_rows) - _BATCH, 0)
        client.log_batch(run_id, metric_rows[:_METRIC_BATCH], param_rows[:_BATCH], tag_rows[: min(early, _BATCH)])
        metric_rows, param_rows = metric_rows[_METRIC_BATCH:], param_rows[_BATCH:]
        tag_rows = tag_rows[min(early, _BATCH) :]
    client.log_batch(run_id, metric_rows, param_rows, tag_rows)


_BATCH = 100
_METRIC_BATCH = 800


def _foreign_errors() -> tuple[type[Exception], ...]:
    from mlflow.exceptions import MlflowException
    from requests import RequestException

    found: list[type[Exception]] = [MlflowException, RequestException, sqlite3.Error, OSError]
    if importlib.util.find_spec("sqlalchemy"):
        from alembic.util import CommandError
        from sqlalchemy.exc import SQLAlchemyError

        found += [SQLAlchemyError, CommandError]
    return tuple(found)
