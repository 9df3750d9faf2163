"""Real services for tests, started once a run on loopback: a private PostgreSQL cluster, and an MLflow server."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.mirror import check_tracking_uri
from tests.support.waiting import wait_until

POSTGRES = "TEST_POSTGRES_URL"
"""Names a database that may be filled, in the place of a private cluster."""
PROGRAMS = Path("/usr/lib/postgresql")
START_S = 180.0
WITHOUT_JOBS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""MLflow 3.17 starts eight processes for jobs that nothing here asks for."""


def free_port() -> int:
    """Return a port of the loopback interface that nothing uses now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def postgres_program(name: str) -> str | None:
    """Return one of PostgreSQL's own programs: Debian keeps them off PATH, a folder a version."""
    newest_first = sorted(PROGRAMS.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]), reverse=True)
    return next(map(str, newest_first), None) or shutil.which(name)


@dataclass
class Postgres:
    """A cluster of its own in a temporary folder, that may be stopped and started again. PostgreSQL refuses root."""

    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address of its one database."""
        return f"postgresql://agent@127.0.0.1:{self.port}/postgres"

    @property
    def is_running(self) -> bool:
        """True between start and stop."""
        return self._process is not None

    def create(self) -> None:
        """Make the cluster."""
        self.folder.chmod(0o755)
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if (owner := self._owner) is not None:
            shutil.chown(data, owner)
        options = ("-U", "agent", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8")
        subprocess.run(
            [str(postgres_program("initdb")), "-D", str(data), *options],
            check=True,
            capture_output=True,
            cwd=self.folder,
            user=self._owner,
        )

    def start(self) -> None:
        """Start its server and wait until it answers."""
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "port": self.port}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(postgres_program("postgres")), "-D", str(self.folder / "data"), *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._owner,
            )
        wait_until(self._answers, START_S)

    def stop(self) -> None:
        """Stop the server at once, as an administrator does who does not wait for clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        ready = [str(postgres_program("pg_isready")), "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, capture_output=True, check=False).returncode == 0

    @property
    def _owner(self) -> str | None:
        """The user it runs as: ourselves, or somebody without rights where we are root."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name for entry in pwd.getpwall()}
        return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running cluster; skips, with the reason, where PostgreSQL is not installed."""
    missing = [name for name in ("initdb", "postgres", "pg_isready") if postgres_program(name) is None]
    if missing:
        pytest.skip(f"no PostgreSQL here ({', '.join(missing)}): run `make services` as root, or install Debian's one")
    # Not below pytest's own folders: only their owner may enter those.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        cluster = Postgres(Path(folder))
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """Address of a PostgreSQL database that may be filled."""
    return os.environ.get(POSTGRES) or str(request.getfixturevalue("postgres").url)


@dataclass
class MlflowServer:
    """A tracking server with its artifact proxy, that may be stopped and started again."""

    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db"]
        command += ["--artifacts-destination", f"{self.folder}/artifacts"]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **WITHOUT_JOBS},
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        wait_until(lambda: check_tracking_uri(self.url) is None, START_S)

    def stop(self) -> None:
        """Kill it with everything it started."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A running tracking server."""
    server = MlflowServer(tmp_path_factory.mktemp("mlflow-server"))
    server.start()
    try:
        yield server
    finally:
        server.stop()
