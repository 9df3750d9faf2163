"""Settings of all tests: Hypothesis draws the same examples each time, and no example has a deadline. And services."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.services import mlflow_server, postgres, postgres_url

__all__ = ["mlflow_server", "postgres", "postgres_url"]

# Ray reads this once, when the first test imports it; only with it can a later test start a Ray of its own.
os.environ["RAY_AUTH_MODE"] = "token"

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")


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
