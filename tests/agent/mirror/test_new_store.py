"""A killed creation of the MLflow store leaves nothing that a later agent could stumble over."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from agent.mirror.new_store import create_sqlite_store
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]


def test_a_creation_that_is_killed_half_way_can_be_done_again(tmp_path: Path) -> None:
    """The store appears whole: killed among MLflow's migrations, only a draft is left, and the next one removes it."""
    path = tmp_path / "mlflow.db"
    code = f"from pathlib import Path; from agent.mirror.new_store import *; create_sqlite_store(Path({str(path)!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_until(lambda: any(draft.stat().st_size for draft in tmp_path.glob("*.draft")), 60.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not path.exists()
    create_sqlite_store(path)
    assert [found.name for found in tmp_path.glob("mlflow.db*")] == ["mlflow.db"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM experiments").fetchone() == (1,)


def test_a_store_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """Whatever the file is, creating must not replace it."""
    path = tmp_path / "mlflow.db"
    path.write_bytes(b"somebody's")
    create_sqlite_store(path)
    assert path.read_bytes() == b"somebody's"
