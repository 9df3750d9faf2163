"""Real SQLite stores of MLflow, made once: creating one costs seconds. Each test has a study name of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.mirror import MlflowMirror, default_artifact_root, default_tracking_uri
from agent.mirror.client import connect
from tests.support.services import MlflowServer


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Benchmarks take minutes: by name only."""
    if "benchmark" not in config.getoption("-m"):
        for item in items:
            if item.get_closest_marker("benchmark"):
                item.add_marker(pytest.mark.skip(reason="run with -m benchmark"))


@dataclass(frozen=True)
class Store:
    home: Path
    client: Any
    server: str = ""
    """Address of the tracking server in front of it; none for a file that is opened directly."""

    def mirror(self, client: Any = None, **options: Any) -> MlflowMirror:
        root = None if self.server else default_artifact_root(self.home)
        uri = self.server or default_tracking_uri(self.home)
        return MlflowMirror(uri, artifact_root=root, client=client or self.client, **options)


def _store(home: Path) -> Store:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, while it makes its tables
        client: Any = connect(default_tracking_uri(home))
        client.search_experiments()
    return Store(home, client)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return _store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def served_store(mlflow_server: MlflowServer) -> Store:
    return Store(mlflow_server.folder, connect(mlflow_server.url), mlflow_server.url)


@pytest.fixture(scope="session")
def other_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return _store(tmp_path_factory.mktemp("other-store"))


@pytest.fixture(scope="session", autouse=True)
def _environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID"):
            patch.delenv(name, raising=False)
        yield


class Killed(BaseException):
    """The mirror's process is gone."""


class DyingClient:
    """Passes calls on until `calls` of them were made, then dies: before the call, or after it took effect."""

    def __init__(self, client: Any, calls: int, *, after: bool) -> None:
        self._client, self._left, self._after = client, calls, after
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **options: Any) -> Any:
            self.names.append(name)
            self._left -= 1
            if self._left < 0 and not self._after:
                raise Killed
            result = method(*args, **options)
            if self._left < 0:
                raise Killed
            return result

        return call


@pytest.fixture
def dying() -> type[DyingClient]:
    return DyingClient


@pytest.fixture
def killed() -> type[Killed]:
    return Killed
