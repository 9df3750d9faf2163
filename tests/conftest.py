"""Settings of all tests: Hypothesis draws the same examples each time, and no example has a deadline. And services."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.alone import Fence, computes, group_of
from tests.support.services import mlflow_server, postgres, postgres_url

__all__ = ["mlflow_server", "postgres", "postgres_url"]

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")
FENCE = Fence()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: it mostly waits."""
    items.sort(key=lambda item: computes(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together what must not run at the same time.

    Not by pytest-xdist's own groups: with pytest 9.2 its version 3.8 takes no notice of them, and does not say so.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(config.rootpath / nodeid.partition("::")[0])

    return Groups(config, log)


@pytest.fixture(autouse=True)
def _computes_only(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that may run beside others starts nothing and listens to nothing."""
    FENCE.is_up = computes(request.path)
    yield
    FENCE.is_up = False


@pytest.fixture(scope="session", autouse=True)
def _databases_need_no_disk() -> Iterator[None]:
    """Nothing here loses its power: what this process commits to SQLite need not reach the disk before it goes on."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def unsynchronised(connection: object, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF").close()

    event.listen(Engine, "connect", unsynchronised)
    yield
    event.remove(Engine, "connect", unsynchronised)
