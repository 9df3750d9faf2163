"""Thousands of trials through the real loop and Ray: does memory or the number of open files grow with them?

    python -m tests.benchmarks.soak --trials 2000

The engine answers at once, over a space with room for that many different launches. Memory is the proportional share
(PSS) of every process, grouped as agent and Ray; growth is the slope of a straight line through the samples after the
first tenth, in which caches fill.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from agent.errors import INTERRUPTED_EXIT_CODE
from runners.processes import descendants
from tests.support.command_line import query

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "tests" / "support" / "wide_space.yaml"
ENGINE = "tests.support.synthetic_engine:SyntheticEngine"
SAMPLE_S = 2.0
WARM_UP = 0.1
"""Share of the trials before which nothing is concluded."""


@dataclass(frozen=True)
class Sample:
    """The processes at one moment."""

    trials: int
    agent_bytes: int
    ray_bytes: int
    agent_files: int
    ray_files: int


@dataclass(frozen=True)
class Growth:
    """What was found; bytes and files a trial are slopes."""

    trials: int
    wall_s: float
    samples: int
    agent_mib: tuple[float, float]
    """After the warm-up, and at the end."""
    ray_mib: tuple[float, float]
    agent_kb_per_trial: float
    ray_kb_per_trial: float
    agent_files: tuple[int, int]
    """Fewest and most after the warm-up."""
    ray_files: tuple[int, int]


def soak(trials: int, folder: Path, longest_s: float = float("inf")) -> list[Sample]:
    """Run a study of that many trials, or as far as it gets, and return a sample every two seconds."""
    started = time.monotonic()
    command = [sys.executable, "-m", "agent", "search", "--home", str(folder / "home"), "--engine", ENGINE]
    command += ["--space", str(SPACE), "--device", "cpu", "--budget", str(trials)]
    samples: list[Sample] = []
    with (folder / "output.txt").open("wb") as output:
        agent = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        while agent.poll() is None:
            time.sleep(SAMPLE_S)
            done = query(folder / "home", "SELECT COUNT(*) FROM trials WHERE state <> 'RUNNING'")
            with suppress(OSError):  # it ended in this moment
                samples.append(_sample(agent.pid, int(done[0][0]) if done else 0))
            if time.monotonic() - started > longest_s:
                agent.send_signal(signal.SIGINT)
                agent.wait()
    if agent.returncode not in (0, INTERRUPTED_EXIT_CODE):
        raise click.ClickException((folder / "output.txt").read_text(encoding="utf-8")[-2000:])
    return samples


def _sample(agent: int, trials: int) -> Sample:
    others = [stat.pid for stat in descendants(agent) if not stat.is_zombie]
    return Sample(
        trials=trials,
        agent_bytes=_memory(agent),
        ray_bytes=sum(map(_memory, others)),
        agent_files=_files(agent),
        ray_files=sum(map(_files, others)),
    )


def _memory(pid: int) -> int:
    """Return the proportional share of a process's memory, in bytes; nothing when it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _files(pid: int) -> int:
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return 0


def growth(samples: list[Sample], wall_s: float) -> Growth:
    """Return what the samples say."""
    last = max(sample.trials for sample in samples)
    kept = [sample for sample in samples if WARM_UP * last <= sample.trials < last]
    done = [float(sample.trials) for sample in kept]

    def slope(values: list[int]) -> float:
        return round(statistics.linear_regression(done, [float(value) for value in values]).slope / 1024, 2)

    agent, ray = [sample.agent_bytes for sample in kept], [sample.ray_bytes for sample in kept]
    files, ray_files = [sample.agent_files for sample in kept], [sample.ray_files for sample in kept]
    return Growth(
        trials=last,
        wall_s=round(wall_s, 1),
        samples=len(kept),
        agent_mib=(round(agent[0] / 2**20, 1), round(agent[-1] / 2**20, 1)),
        ray_mib=(round(ray[0] / 2**20, 1), round(ray[-1] / 2**20, 1)),
        agent_kb_per_trial=slope(agent),
        ray_kb_per_trial=slope(ray),
        agent_files=(min(files), max(files)),
        ray_files=(min(ray_files), max(ray_files)),
    )


@click.command()
@click.option("--trials", default=2000, show_default=True)
@click.option("--samples", "sample_path", type=click.Path(path_type=Path), help="File for the samples, as JSON lines.")
@click.option("--minutes", default=float("inf"), help="Time after which the study is interrupted.")
def main(trials: int, sample_path: Path | None, minutes: float) -> None:
    """Print how memory and open files grow with the trials."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        samples = soak(trials, Path(folder), 60 * minutes)
    if sample_path is not None:
        lines = (json.dumps(asdict(sample)) for sample in samples)
        sample_path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    click.echo(json.dumps(asdict(growth(samples, time.monotonic() - started)), indent=2))


if __name__ == "__main__":
    main()
