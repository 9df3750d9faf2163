"""A search gives MLflow seconds, a repair a minute: a server that takes ten for each answer can be repaired."""

from __future__ import annotations

import os

import pytest

from agent.mirror.client import connect, wait_for_slow_servers

TIMEOUT, RETRIES = "MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"


def test_a_repair_waits_for_a_slow_server_also_after_a_search_in_the_same_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (TIMEOUT, RETRIES):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    connect("http://127.0.0.1:1")
    assert (os.environ[TIMEOUT], os.environ[RETRIES]) == ("5", "1")
    wait_for_slow_servers()
    assert (os.environ[TIMEOUT], os.environ[RETRIES]) == ("60", "3")


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIMEOUT, "17")
    monkeypatch.setenv(RETRIES, "2")
    wait_for_slow_servers()
    assert (os.environ[TIMEOUT], os.environ[RETRIES]) == ("17", "2")
