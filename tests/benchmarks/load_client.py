"""How many streamed token events a second the load client takes, and what share of a core it needs for them.

    python -m tests.benchmarks.load_client [--repeats 3]

The stub server runs on one core and the client on another. `flat out`: the stub sends as fast as it can; `paced`: its
batch steps as an engine's does, so that events come one by one. A share well below 1 means that the client waited for
the server. Every run checks that the client's tokens equal the stub's own counter.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import click

from runners import Workload
from runners.load_client import Api, LoadJob, run_load
from tests.support.stub_servers import stub_server


@dataclass(frozen=True)
class Case:
    """One kind of stream."""

    name: str
    api: Api
    streams: int
    output_tokens: int
    options: dict[str, object]


SGLANG: dict[str, object] = {"metrics": "sglang"}
NEW_IDS = SGLANG | {"incremental": True}
CASES = (
    Case("flat out", "openai", 8, 10_000, {}),
    Case("flat out", "openai", 64, 2_000, {}),
    Case("flat out, new ids in each event", "sglang", 8, 10_000, NEW_IDS),
    Case("flat out, all ids in each event", "sglang", 8, 500, SGLANG),
    Case("paced", "openai", 64, 2_000, {"step_ms": 1.0}),
    Case("paced, new ids in each event", "sglang", 64, 2_000, NEW_IDS | {"step_ms": 0.4}),
    Case("paced, all ids in each event", "sglang", 64, 200, SGLANG | {"step_ms": 0.2}),
)


def measure(case: Case) -> tuple[float, float]:
    """Return events per second and the client's share of a core."""
    workload = Workload(concurrency=(case.streams,), output_tokens=case.output_tokens, requests=case.streams)
    with stub_server(**case.options) as server:
        job = LoadJob(base_url=server.base_url, api=case.api, model="stub", workload=workload, request_timeout_s=600)
        result = run_load(job)
    assert result.problem is None, result.problem
    (level,) = result.levels
    assert level.output_tokens == level.server_output_tokens == case.streams * case.output_tokens
    return level.output_tokens / level.wall_s, result.own_cpu_share  # without drafts, an event is a token


@click.command(help=__doc__)
@click.option("--repeats", default=3, show_default=True)
def main(repeats: int) -> None:
    """Print a table."""
    click.echo(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    click.echo("| stream | endpoint | streams | events/s, each run | own CPU share, each run |\n|---|---|---|---|---|")
    for case in CASES:
        runs = [measure(case) for _ in range(repeats)]
        rates, shares = (", ".join(form.format(run[place]) for run in runs) for place, form in enumerate(FORMS))
        click.echo(f"| {case.name} | {case.api} | {case.streams} | {rates} | {shares} |")


FORMS = ("{:,.0f}", "{:.2f}")


if __name__ == "__main__":
    main()
