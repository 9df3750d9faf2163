"""The command line in tests: a real process where Ray is needed, and a study file looked at without Optuna."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = "tests.support.synthetic_engine:SyntheticEngine"
SYNTHETIC = ("--space", "torch", "--device", "cpu")
"""Options of every search with an engine of the tests: the torch space, and no GPU even where there is one."""
TIMEOUT_S = 120


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without what would steer an agent, and with the checkout importable."""
    kept = {name: value for name, value in os.environ.items() if name not in ("AGENT_HOME", "MLFLOW_TRACKING_URI")}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


@dataclass(frozen=True)
class Search:
    """A command at work in a process of its own."""

    home: Path
    process: subprocess.Popen[str]
    patience_s: float = TIMEOUT_S

    @cached_property
    def ended(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end and return what it printed."""
        out, err = self.process.communicate(timeout=self.patience_s)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


def start_agent(*words: str, home: Path, **variables: str) -> Search:
    """Start a command."""
    return _start([sys.executable, "-u", "-m", "agent", *words, "--home", str(home)], home, variables)


def start_python(program: str, home: Path, **variables: str) -> Search:
    """Start a program that gets the home as its only argument."""
    return _start([sys.executable, "-c", program, str(home)], home, variables)


def agent(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return start_agent(*words, home=home).ended


def _start(command: list[str], home: Path, variables: dict[str, str]) -> Search:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment(**variables), stdout=pipe, stderr=pipe, text=True)
    return Search(home, process)


def copied(home: Path, to: Path) -> Path:
    """Return a copy of a home that a test may change."""
    shutil.copytree(home, to)
    return to


def query(home: Path, statement: str) -> list[tuple[str, ...]]:
    """Return rows of the study database, empty while there is none; texts only."""
    path = home / "study.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            return [tuple(map(str, row)) for row in connection.execute(statement)]
        except sqlite3.OperationalError:  # the tables are still being made
            return []


def execute(home: Path, statement: str) -> None:
    """Change the study database behind the agent's back."""
    with closing(sqlite3.connect(home / "study.db", timeout=10)) as connection, connection:
        connection.execute(statement)


def running_cookies(home: Path) -> list[str]:
    """Return the cookies of the trials that the database holds as running."""
    rows = query(
        home,
        "SELECT json_extract(value_json, '$.cookie') FROM trial_user_attributes JOIN trials USING (trial_id) "
        "WHERE key = 'launch' AND state = 'RUNNING'",
    )
    return [cookie for (cookie,) in rows]
