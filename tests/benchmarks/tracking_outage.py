"""MLflow down for half of a study: is it, after `agent sync`, what it is of a study that nobody disturbed?

    python -m tests.benchmarks.tracking_outage --trials 200
    python -m tests.benchmarks.tracking_outage --trials 8 --outage slow

Two studies of the same modelled node, through the real loop, Ray and two `mlflow server`s. One server is away from
the middle of the study to its end (`half`), between a quarter and three quarters of it (`middle`), from the start to
the end (`start`), or takes 10 s for each answer (`slow`), also to `agent sync`. Compared are status, params, every
metric with its steps, tags, and artifacts with their content; left out are times of day, what was measured in seconds
of the harness, and paths.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from agent.mirror.client import connect
from tests.support.command_line import agent, environment, query
from tests.support.services import MlflowServer
from tests.support.tracking_proxy import TrackingProxy

NODE = "pcie8-blackwell-cuda128"
NAME = "outage"
SLOW_S = 10.0
LEFT_OUT_TAGS = ("agent.mirrored", "mlflow.parentRunId", "mlflow.user", "mlflow.source")


@dataclass(frozen=True)
class Finding:
    """The two servers compared."""

    outage: str
    trials: int
    exit_code: int
    search_s: float
    undisturbed_s: float
    sync_s: float
    missing_before_sync: int
    """Runs that the disturbed server lacked, or had otherwise, when the search had ended."""
    runs: int
    different_after_sync: int
    touched_by_second_sync: int
    first_difference: str = ""


def run(trials: int, outage: str, folder: Path) -> Finding:
    """Run both studies and compare what MLflow has of them."""
    servers = [MlflowServer(_made(folder / name)) for name in ("disturbed-server", "other-server")]
    try:
        for server in servers:
            server.start()
        proxy = TrackingProxy(servers[0].port)
        code, search_s = _disturbed(proxy, trials, outage, folder / "disturbed")
        undisturbed_s = _search(trials, servers[1].url, folder / "undisturbed")
        wanted = content(servers[1].url, folder / "undisturbed")
        before = content(servers[0].url, folder / "disturbed")
        started = time.monotonic()
        _sync(proxy.url if outage == "slow" else servers[0].url, folder / "disturbed")
        sync_s = round(time.monotonic() - started, 1)
        after = content(servers[0].url, folder / "disturbed")
        again = json.loads(agent("sync", "--json", "--tracking-uri", servers[0].url, home=folder / "disturbed").stdout)
        different = [key for key in wanted if after.get(key) != wanted[key]] + [
            key for key in after if key not in wanted
        ]
        return Finding(
            outage=outage,
            trials=trials,
            exit_code=code,
            search_s=search_s,
            undisturbed_s=undisturbed_s,
            sync_s=sync_s,
            missing_before_sync=sum(before.get(key) != wanted[key] for key in wanted),
            runs=len(wanted),
            different_after_sync=len(different),
            touched_by_second_sync=again["created"] + again["updated"] + again["removed"],
            first_difference=_difference(after.get(different[0]), wanted.get(different[0])) if different else "",
        )
    finally:
        for server in servers:
            server.stop()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _command(trials: int, uri: str, home: Path, *, is_in_environment: bool = False) -> list[str]:
    words = [sys.executable, "-m", "agent", "search", "--home", str(home), "--engine", "replay", "--node", NODE]
    words += ["--budget", str(trials), "--name", NAME]
    return words if is_in_environment else [*words, "--tracking-uri", uri]


def _search(trials: int, uri: str, home: Path) -> float:
    started = time.monotonic()
    subprocess.run(_command(trials, uri, home), check=True, stdout=subprocess.DEVNULL, env=environment())
    return round(time.monotonic() - started, 1)


def _sync(uri: str, home: Path) -> None:
    command = [sys.executable, "-m", "agent", "sync", "--home", str(home), "--tracking-uri", uri]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())


def _disturbed(proxy: TrackingProxy, trials: int, outage: str, home: Path) -> tuple[int, float]:
    """Run a search behind a wire that is cut or slow; the address comes from the environment, as it may be down."""
    started = time.monotonic()
    if outage == "start":
        proxy.cut()
    proxy.delay_s = SLOW_S if outage == "slow" else 0.0
    command = _command(trials, proxy.url, home, is_in_environment=True)
    variables = environment(MLFLOW_TRACKING_URI=proxy.url)
    search = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=variables)
    while search.poll() is None:
        time.sleep(0.2)
        rows = query(home, "SELECT COUNT(*) FROM trials WHERE state <> 'RUNNING' AND study_id = 1")
        done = int(rows[0][0]) if rows else 0
        if done >= trials * {"half": 0.5, "middle": 0.25}.get(outage, 2.0):
            proxy.cut()
        if outage == "middle" and done >= 0.75 * trials:
            proxy.mend()
    return search.returncode, round(time.monotonic() - started, 1)


def content(uri: str, home: Path) -> dict[str, object]:
    """Return everything that a server has of the study, by trial, without times of day and without the home's path."""
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    client: Any = connect(uri)
    experiment = client.get_experiment_by_name(NAME)
    runs, token = [], None
    while experiment is not None:
        page = client.search_runs([experiment.experiment_id], max_results=500, page_token=token)
        runs += list(page)
        token = page.token
        if not token:
            break
    found: dict[str, object] = {}
    for run in runs:
        key = run.data.tags.get("agent.trial", "study")
        found[key if key not in found else f"{key} again"] = _run_content(client, run, home)
    return found


def _run_content(client: Any, run: Any, home: Path) -> dict[str, object]:
    histories = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith(LEFT_OUT_TAGS)}
    whole = {
        "status": run.info.status,
        "params": run.data.params,
        "tags": tags,
        "metrics": {name: sorted((point.step, point.value) for point in points) for name, points in histories.items()},
        "artifacts": _artifacts(client, run.info.run_id),
    }
    text = json.dumps(whole, sort_keys=True).replace(str(home), "HOME")
    return dict(json.loads(re.sub(r"127\.0\.0\.1:\d+", "SERVER", text)))


def _artifacts(client: Any, run_id: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        if not client.list_artifacts(run_id):
            return {}
        place = Path(client.download_artifacts(run_id, "", folder))
        files = (path for path in sorted(place.rglob("*")) if path.is_file())
        return {str(path.relative_to(place)): path.read_text(encoding="utf-8") for path in files}


def _difference(one: object, other: object) -> str:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return f"{'missing' if one is None else 'there'}, but {'missing' if other is None else 'there'} undisturbed"
    part = next(name for name in one if one[name] != other[name])
    return f"{part}: {str(one[part])[:300]} / {str(other[part])[:300]}"


@click.command()
@click.option("--trials", default=200, show_default=True)
@click.option("--outage", type=click.Choice(["half", "middle", "start", "slow"]), default="half", show_default=True)
def main(trials: int, outage: str) -> None:
    """Print what MLflow lacks after an outage and a sync; exit code 1 when it is anything."""
    with tempfile.TemporaryDirectory(prefix="outage-") as folder:
        found = run(trials, outage, Path(folder))
    click.echo(json.dumps(asdict(found), indent=2))
    sys.exit(1 if found.different_after_sync or found.touched_by_second_sync or found.exit_code else 0)


if __name__ == "__main__":
    main()
