"""kill -9 of the agent at random instants of a study, `agent resume` each time: is anything lost, doubled or left?

    python -m tests.benchmarks.kill_resume --kills 10 --budget 40

The engine is deterministic (its processes are real), so an uninterrupted run gives the sequence to compare with.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

ENGINE = "tests.support.synthetic_engine:ProcessSyntheticEngine"
ROOT = Path(__file__).parents[2]
LONGEST_LIFE_S = 8.0
"""An agent is killed within this time of its start: Ray needs about four seconds of it, a launch half a second."""
RAY_GRACE_S = 90.0
"""Ray's own agents may take this long to notice that their cluster is gone."""


@dataclass(frozen=True)
class Finding:
    """What is true of the study after all kills and resumes."""

    kills: int
    closed: int
    identities_run_twice: int
    processes_left: int
    runs_that_sync_had_to_touch: int
    same_proposals: bool


MARK = "KILL_RESUME_MARK"
"""In the environment of everything this benchmark starts, so that nobody else's processes are counted."""


def run(kills: int, budget: int, seed: int, folder: Path) -> Finding:
    """Kill and resume a study, run another one undisturbed, and compare."""
    generator = random.Random(seed)
    os.environ[MARK] = folder.name
    home, undisturbed = folder / "killed", folder / "undisturbed"
    start = _command("search", home, "--budget", str(budget), *_ENGINE_OPTIONS)
    done = 0
    for _ in range(kills):
        done += _killed(
            start if not _exists(home) else _command("resume", home), generator.uniform(1.0, LONGEST_LIFE_S)
        )
    while not _finished(home):
        subprocess.run(
            start if not _exists(home) else _command("resume", home), check=True, stdout=subprocess.DEVNULL, cwd=ROOT
        )
    subprocess.run(
        _command("search", undisturbed, "--budget", str(budget), *_ENGINE_OPTIONS),
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
    )
    sequence = _identities(home)
    return Finding(
        kills=done,
        closed=len(sequence),
        identities_run_twice=sum(count - 1 for count in Counter(sequence).values()),
        processes_left=_processes_left(),
        runs_that_sync_had_to_touch=_touched_by_sync(home),
        same_proposals=sequence == _identities(undisturbed),
    )


_ENGINE_OPTIONS = ("--engine", ENGINE, "--space", "torch", "--device", "cpu", "--name", "killed")


def _command(name: str, home: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "agent", name, "--home", str(home), *options]


def _killed(command: Sequence[str], after_s: float) -> int:
    """Start, wait, kill -9; return 1 when there was still something to kill."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return 1
    return 0


def _status(home: Path) -> dict[str, int] | None:
    asked = subprocess.run(_command("status", home, "--json"), capture_output=True, text=True, check=False, cwd=ROOT)
    return json.loads(asked.stdout) if asked.returncode == 0 else None


def _exists(home: Path) -> bool:
    return _status(home) is not None


def _finished(home: Path) -> bool:
    status = _status(home)
    return status is not None and status["spent"] >= status["budget"]


def _identities(home: Path) -> list[str]:
    """Return the identities of the launches that count, in the order in which they were proposed."""
    from agent.home import Home
    from agent.reading import read_study

    trials = read_study(Home.find(str(home)), None, None).history.trials
    return [trial.work.identity for trial in trials if trial.counts]


def _processes_left() -> int:
    """Return how many processes of any agent session are alive, after Ray's own had time to go."""
    deadline = time.monotonic() + RAY_GRACE_S
    while (left := len(_ours())) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def _ours() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue
            if f"\0{MARK}={os.environ[MARK]}\0".encode() in b"\0" + environment + b"\0":
                found.append(int(folder.name))
    return found


def _touched_by_sync(home: Path) -> int:
    asked = subprocess.run(_command("sync", home, "--json"), capture_output=True, text=True, check=True, cwd=ROOT)
    report = json.loads(asked.stdout)
    return int(report["created"]) + int(report["updated"]) + int(report["removed"])


@click.command()
@click.option("--kills", default=10, show_default=True)
@click.option("--budget", default=40, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(kills: int, budget: int, seed: int) -> None:
    """Print what is left of a study after that many kills."""
    with tempfile.TemporaryDirectory(prefix="kill-resume-") as folder:
        click.echo(json.dumps(asdict(run(kills, budget, seed, Path(folder))), indent=2))


if __name__ == "__main__":
    main()
