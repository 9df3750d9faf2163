"""What the agent itself costs a trial, beside a bare loop of Optuna + SQLite + MLflow that stores the same things.

    python -m tests.benchmarks.overhead --trials 200 --trials 2000

Both run in this one call, as processes of their own, over the same space, with an engine that answers at once. CPU
seconds are those of all processes (Ray's daemons too); wall time is until everything is flushed to MLflow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "tests" / "support" / "wide_space.yaml"
ENGINE = "tests.support.synthetic_engine:SyntheticEngine"
MARK = "OVERHEAD_MARK"
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.25


@dataclass(frozen=True)
class Cost:
    """Cost of one loop."""

    trials: int
    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Comparison:
    """Ours beside the bare loop, at one number of trials."""

    ours: Cost
    bare: Cost

    @property
    def cpu_ratio(self) -> float:
        """Our CPU seconds divided by the bare loop's."""
        return self.ours.cpu_s / self.bare.cpu_s

    @property
    def wall_ratio(self) -> float:
        """Our wall time divided by the bare loop's."""
        return self.ours.wall_s / self.bare.wall_s


def compare(trials: int) -> Comparison:
    """Run both loops with that many trials."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        ours = measure(
            [
                *(sys.executable, "-m", "agent", "search", "--home", f"{folder}/ours", "--engine", ENGINE),
                *("--space", str(SPACE), "--device", "cpu", "--budget", str(trials)),
            ],
            trials,
        )
        bare = measure([sys.executable, "-m", "tests.benchmarks.bare_loop", f"{folder}/bare", str(trials)], trials)
    return Comparison(ours, bare)


def measure(command: Sequence[str], trials: int) -> Cost:
    """Run a command to its end and add up the CPU time of everything that it started."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    meter = _Meter(mark)
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, MARK: mark, "PYTHONWARNINGS": "ignore"}, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise click.ClickException(f"{' '.join(command)} ended with {process.returncode}")
    own_s = usage.ru_utime + usage.ru_stime
    return Cost(trials, max(own_s, meter.stop(process.pid) + own_s), wall_s)


class _Meter:
    """Samples the CPU time of all processes that carry the mark; what ended keeps its last reading."""

    def __init__(self, mark: str) -> None:
        self._entry = f"\0{MARK}={mark}\0".encode()
        self._seconds: dict[tuple[int, str], float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self, main_pid: int) -> float:
        """Return the seconds of all marked processes but the main one, whose own usage the kernel reports exactly."""
        self._stopped.set()
        self._thread.join()
        return sum(seconds for (pid, _), seconds in self._seconds.items() if pid != main_pid)

    def _run(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            for folder in Path("/proc").iterdir():
                if folder.name.isdigit():
                    self._sample(folder)

    def _sample(self, folder: Path) -> None:
        try:
            if self._entry not in b"\0" + (folder / "environ").read_bytes() + b"\0":
                return
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return
        self._seconds[int(folder.name), fields[19]] = (int(fields[11]) + int(fields[12])) / TICKS


@click.command()
@click.option("--trials", multiple=True, type=int, default=(200, 2000), show_default=True)
def main(trials: tuple[int, ...]) -> None:
    """Print both costs and their ratio for each number of trials."""
    rows = [compare(number) for number in trials]
    for row in rows:
        each_ms = {name: 1000 * getattr(row, name).cpu_s / row.ours.trials for name in ("ours", "bare")}
        click.echo(
            f"{row.ours.trials:>5} trials: CPU {row.ours.cpu_s:.1f} s / {row.bare.cpu_s:.1f} s = {row.cpu_ratio:.2f}, "
            f"wall {row.ours.wall_s:.1f} s / {row.bare.wall_s:.1f} s = {row.wall_ratio:.2f}; "
            f"CPU ms a trial {each_ms['ours']:.0f} / {each_ms['bare']:.0f}"
        )
    click.echo(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
