"""What a newcomer gets: clone, `make search`, and is the map true?

    python -m tests.benchmarks.fresh_clone

Clones this repository (its last commit) into a new folder without any cache of ours, runs `make search` there, and
compares the dead ends with what bare torch calls say in the environment that `make` built.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]


def run(budget: int) -> dict[str, object]:
    """Return how long it took, what was closed and measured, and whether the map equals the expected one."""
    with tempfile.TemporaryDirectory(prefix="fresh-clone-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "AGENT_HOME")}
        environment["PIP_NO_CACHE_DIR"] = "1"
        started = time.monotonic()
        subprocess.run(["make", "search", f"BUDGET={budget}"], cwd=clone, env=environment, check=True)
        seconds = time.monotonic() - started
        status = json.loads(_output(clone, environment, ".venv/bin/agent", "status", "--json"))
        dead_ends = json.loads(_output(clone, environment, ".venv/bin/agent", "deadends", "--json"))
        expected = _output(clone, environment, ".venv/bin/python", "-m", "tests.support.bare_torch").splitlines()
    found = sorted(_conditions(entry) for entry in dead_ends if entry["state"] == "confirmed")
    return {
        "seconds": round(seconds, 1),
        "closed": status["spent"],
        "measured": status["outcomes"]["measured"],
        "dead_ends": found,
        "expected": sorted(expected),
        "map_is_as_expected": found == sorted(expected),
    }


def _output(clone: Path, environment: dict[str, str], *command: str) -> str:
    return subprocess.run(command, cwd=clone, env=environment, check=True, capture_output=True, text=True).stdout


def _conditions(dead_end: dict[str, list[dict[str, object]]]) -> str:
    return " ∧ ".join(
        f"{condition['parameter']} {condition['comparison']} {str(condition['value']).lower()}"
        for condition in dead_end["conditions"]
    )


@click.command()
@click.option("--budget", default=40, show_default=True)
def main(budget: int) -> None:
    """Print the figures of a fresh clone."""
    click.echo(json.dumps(run(budget), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
