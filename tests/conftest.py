"""Settings of all tests: Hypothesis draws the same examples each time, and no example has a deadline. And services."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

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
