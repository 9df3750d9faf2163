"""What a trial costs the agent late in a large study, without the hours until then.

    python -m tests.benchmarks.late_trials --size 1000 --size 10000 --window 60

A study of the replay engine is begun, then filled with launches of random assignments that nobody proposed (answered by
the node model, judged, and stored like any other) up to each size, and from there the real loop runs a window of
trials, probes included, with so many in flight. CPU is that of the loop's thread, answers of the model included.
"""

from __future__ import annotations

import cProfile
import gc
import json
import pstats
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import click

from agent.campaign import Campaign
from agent.home import Home
from agent.interruption import Interruption
from agent.judge import judge
from agent.propose.history import History
from agent.recovery import own_lease
from agent.requests import request_of
from agent.spec import load_spec
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Kind, Trial, Work
from agent.studies import make_plan
from runners import Rung
from runners.ray_pool import RayPool
from runners.registry import make_runner
from tests.support.pool_in_here import PoolInHere

FIRST = 80
"""Trials of the real loop before the study is filled: base, baseline and collectives."""


@dataclass
class Until:
    """An observer that ends the loop after so many trials, and looks at the clock for all but the first of them.

    Until then a fresh agent has taken in the whole study. So has the garbage collector: it looks at all of it each time
    that a quarter more is there, and would do so here for what the fresh agent has just made.
    """

    interruption: Interruption
    first: int
    window: int
    closed: int = 0
    probes: int = 0
    cpu_s: float = 0.0

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Nothing."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """Count, and say that it is enough."""
        self.closed += 1
        self.probes += trial.work.kind is Kind.PROBE
        if self.closed == self.first:
            gc.collect()
            self.cpu_s = time.thread_time()
        if self.closed == self.first + self.window:
            self.cpu_s = time.thread_time() - self.cpu_s
            self.interruption.note(signal.SIGTERM)

    def tick(self) -> None:
        """Nothing."""


def run_window(store: StudyStore, home: Home, window: int, in_flight: int) -> float:
    """Run two rounds of trials, then so many more, and return the CPU milliseconds of each of these."""
    interruption = Interruption()
    until = Until(interruption, 2 * in_flight, window)
    runner = make_runner("replay")
    pool = cast(RayPool, PoolInHere(runner))
    Campaign(store, runner, pool, home, own_lease(), {}, (until,), interruption, slots=in_flight).run()
    click.echo(f"{until.probes} of {until.closed} were probes", err=True)
    return 1e3 * until.cpu_s / window


def fill(store: StudyStore, home: Home, size: int, seed: int) -> None:
    """Store closed launches of random assignments until the study has that many."""
    manifest, runner, generator = store.manifest, make_runner("replay"), random.Random(f"{seed}/{size}")
    space, facts, lease = manifest.space, manifest.facts, own_lease()
    known = {trial.work.key for trial in store.trials()}
    base = next(trial.work.resolved for trial in store.trials() if trial.is_measured)
    folder = home.artifact_dir(store.name, "filled")
    while len(store.trials()) < size:
        point = {name: generator.choice(each.domain) for name, each in space.parameters.items()}
        requested = space.normalise(point, facts)
        found = runner.resolve(requested, manifest.settings.engine, facts)
        if found.error is not None or space.violation(requested, facts) is not None:
            continue
        work = Work(
            kind=Kind.SEARCH, rung=Rung.FULL, requested=requested, resolved=found.assignment, stage="filled", base=base
        )
        if work.key in known:
            continue
        known.add(work.key)
        trial = store.open_trial(work, "filled", lease, str(folder))
        record = runner.run(request_of(trial, manifest, {}))
        store.close(trial, judge(trial, record, space, [], 0), record)


@click.command()
@click.option("--size", "sizes", type=int, multiple=True, default=(1000, 10000))
@click.option("--window", type=int, default=60)
@click.option("--in-flight", type=int, default=50)
@click.option("--node", default="pcie8-blackwell-cuda128")
@click.option("--seed", type=int, default=0)
@click.option("--memory", is_flag=True, help="Store the study in memory instead of in SQLite.")
@click.option("--profile", is_flag=True, help="Print where the time of the last window goes.")
def main(
    sizes: tuple[int, ...], window: int, in_flight: int, node: str, seed: int, memory: bool, profile: bool
) -> None:
    """Print CPU milliseconds a trial at each size, as JSON."""
    import optuna

    with tempfile.TemporaryDirectory(prefix="late-trials-") as folder:
        home = Home(Path(folder))
        home.create()
        plan = make_plan(load_spec(None, {"engine": "replay", "node": node, "budget": 1, "seed": seed}), home)
        storage = optuna.storages.InMemoryStorage() if memory else open_storage(plan.storage_url)
        store = StudyStore.create(storage, plan.storage_url, plan.manifest)
        store.set_attribute(BUDGET, 4 * max(sizes))
        run_window(store, home, FIRST, in_flight)
        cost: dict[int, float] = {}
        for size in sizes:
            began = time.thread_time()
            fill(store, home, size, seed)
            click.echo(f"filled up to {size} in {time.thread_time() - began:.1f} CPU s", err=True)
            profiler = cProfile.Profile()
            if profile and size == sizes[-1]:
                profiler.enable()
            cost[size] = round(run_window(store, home, window, in_flight), 1)
            profiler.disable()
            click.echo(f"{size}: {cost[size]} CPU ms a trial", err=True)
            if profile and size == sizes[-1]:
                pstats.Stats(profiler).sort_stats("cumulative").print_stats(90)
        growth = round(cost[sizes[-1]] / cost[sizes[0]], 2)
        click.echo(json.dumps({"node": node, "in_flight": in_flight, "cpu_ms_each": cost, "growth": growth}))


if __name__ == "__main__":
    main()
