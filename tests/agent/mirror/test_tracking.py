"""An address is checked within seconds, and the way to MLflow's view is one command."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agent.mirror import check_tracking_uri, default_tracking_uri, ui_command


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.mark.parametrize("status", [200, 404])
def test_a_server_that_answers_is_fine(server: str, status: int) -> None:
    assert check_tracking_uri(f"{server}/{status}") is None


def test_a_login_in_the_address_is_no_part_of_the_host(server: str) -> None:
    assert check_tracking_uri(f"{server.replace('//', '//me:pw@')}/200") is None


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_server_that_refuses_is_named_with_its_answer(server: str, status: int) -> None:
    assert str(status) in str(check_tracking_uri(f"{server}/{status}"))


def test_a_closed_port_is_an_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://me:pw@127.0.0.1:{closed.getsockname()[1]}"
        problem = str(check_tracking_uri(uri))
    assert "cannot be used" in problem
    assert ":pw@" not in problem


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.perf_counter()
        assert check_tracking_uri(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        assert time.perf_counter() - started < 3.0


@pytest.mark.parametrize(
    "uri", ["", "mlruns", "http://", "http://host:notaport", "ftp://host", "sqlite:x", "http://[1"]
)
def test_a_malformed_address_is_an_error(uri: str) -> None:
    assert "address" in str(check_tracking_uri(uri))


@pytest.mark.parametrize("uri", ["sqlite:////a/mlflow.db", "postgresql+psycopg2://me@db/x", "databricks"])
def test_a_database_is_not_asked(uri: str) -> None:
    assert check_tracking_uri(uri) is None


def test_the_command_for_a_database_starts_a_server_on_loopback(tmp_path: Path) -> None:
    command = ui_command(default_tracking_uri(tmp_path / "a home"), "7")
    assert command.startswith(f"mlflow ui --backend-store-uri 'sqlite:///{tmp_path}/a home/mlflow.db' --host 127.0.0.1")
    assert command.endswith(
        "http://127.0.0.1:5000/#/experiments/7/runs?workflowType=machine_learning&viewStateShareKey=trials"
    )


def test_a_server_needs_no_command() -> None:
    assert (
        ui_command("http://host:5000/", "7")
        == "http://host:5000/#/experiments/7/runs?workflowType=machine_learning&viewStateShareKey=trials"
    )
