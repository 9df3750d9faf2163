"""Where MLflow is: default address, quick check of an address, command that opens its view. No MLflow is imported."""

from __future__ import annotations

import base64
import shlex
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from agent.mirror.prepared_view import VIEW
from agent.redaction import redact_url

_DATABASES = frozenset({"sqlite", "postgresql", "mysql", "mssql"})
_SERVERS = frozenset({"http", "https"})
_CHECK_TIMEOUT_S = 2.5
UI_PORT = 5000


def default_tracking_uri(home: Path) -> str:
    """Return the address of the SQLite store under the state folder."""
    return f"sqlite:///{home.resolve() / 'mlflow.db'}"


def default_artifact_root(home: Path) -> str:
    """Return the folder for artifacts that goes with the default address."""
    return str(home.resolve() / "mlartifacts")


def artifact_location(tracking_uri: str, artifact_root: str | None, study: str) -> str | None:
    """Return where a new experiment keeps its artifacts; None leaves it to the server, which knows best.

    A database without a server in front would put them into the current folder: beside an SQLite file is better.
    """
    if urlsplit(tracking_uri).scheme in _SERVERS:
        return None
    if artifact_root is None and tracking_uri.startswith("sqlite:///"):
        artifact_root = default_artifact_root(Path(tracking_uri.removeprefix("sqlite:///")).parent)
    return (Path(artifact_root).resolve() / quote(study, safe="")).as_uri() if artifact_root else None


def check_tracking_uri(uri: str, timeout_s: float = _CHECK_TIMEOUT_S) -> str | None:
    """Return what is wrong with a tracking address, or None. Asks a server whether it is alive; takes at most 3 s."""
    shown = redact_url(uri)
    try:
        parts = urlsplit(uri)
        scheme, host, _ = parts.scheme.partition("+")[0], parts.hostname, parts.port
    except ValueError as error:
        return f"The tracking address {shown!r} is malformed: {error}."
    if scheme in _SERVERS:
        return _ask(uri, shown, timeout_s) if host else f"The tracking address {shown!r} names no host."
    if "databricks" in (uri, scheme) or (scheme in _DATABASES and "://" in uri):
        return None
    return (
        f"The tracking address {shown!r} is not one that MLflow can use. "
        "Give http://HOST:PORT of a server, or sqlite:////PATH/mlflow.db."
    )


def ui_page(experiment_id: str) -> str:
    """Return the part of an address that opens a study's runs as prepared; else MLflow opens with pages on chats."""
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={VIEW}"


def is_server(tracking_uri: str) -> bool:
    """Return whether a tracking address is a server, which shows its view itself."""
    return urlsplit(tracking_uri).scheme in _SERVERS


def ui_arguments(tracking_uri: str, artifact_root: str | None, port: int) -> list[str]:
    """Return the arguments of the `mlflow` command that shows a store, on this host only."""
    words = ["ui", "--backend-store-uri", tracking_uri]
    words += ["--default-artifact-root", artifact_root] if artifact_root else []
    # One worker: each imports all of MLflow, and four of them keep a small machine busy for a minute.
    return [*words, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]


def ui_command(tracking_uri: str, experiment_id: str, artifact_root: str | None = None) -> str:
    """Return what to type to see the study, and its page; with a server there is nothing to start."""
    page = ui_page(experiment_id)
    if is_server(tracking_uri):
        return f"{redact_url(tracking_uri).rstrip('/')}/{page}"
    words = ["mlflow", *ui_arguments(redact_url(tracking_uri), artifact_root, UI_PORT)]
    return f"{shlex.join(words)}   # then open http://127.0.0.1:{UI_PORT}/{page}"


def _ask(uri: str, shown: str, timeout_s: float) -> str | None:
    # In a thread of its own: looking up a host name has no time-out that could be set.
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(_health(uri, timeout_s)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    problem = answers[0] if answers else f"no answer within {timeout_s:g} s"
    return f"The tracking server {shown} cannot be used: {problem}." if problem else None


def _health(uri: str, timeout_s: float) -> str | None:
    try:
        with urllib.request.urlopen(_health_request(uri), timeout=timeout_s):  # noqa: S310 (http or https, checked)
            return None
    except urllib.error.HTTPError as error:
        # A gateway in front of MLflow need not know /health; a refusal or a broken server is a problem.
        return f"it answers {error.code} {error.reason}" if error.code in (401, 403) or error.code >= 500 else None
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, HTTPException, ValueError) as error:
        return str(error) or type(error).__name__


def _health_request(uri: str) -> urllib.request.Request:
    parts = urlsplit(uri)
    login, _, address = parts.netloc.rpartition("@")
    request = urllib.request.Request(f"{parts.scheme}://{address}{parts.path.rstrip('/')}/health")  # noqa: S310
    if login:  # urllib takes it for a part of the host's name
        request.add_header("Authorization", f"Basic {base64.b64encode(unquote(login).encode()).decode()}")
    return request
