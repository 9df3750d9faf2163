"""A large study of the replay engine on a real Ray cluster: what a closed trial costs the agent, early and late.

    python -m tests.benchmarks.replay_cluster --trials 10000 --raylets 8 --in-flight 50 --minutes 7
    python -m tests.benchmarks.replay_cluster --trials 500 --raylets 4 --gpus 32 --in-flight 4   # small
    python -m tests.benchmarks.replay_cluster --trials 1000 --here            # without Ray: the loop alone
    python -m tests.benchmarks.replay_cluster --trials 1000 --here --profile  # where its time goes

The modelled nodes are 50 of eight GPUs, each with one trial of eight ranks in flight; the raylets are processes of this
machine that offer 400 GPUs between them. Answers take a few milliseconds of a worker, so trials close as fast as the
agent hands them out: a real trial takes minutes. CPU is that of the agent's thread (the mirror has one of its own and
is left out), so that a busy machine does not count. Trials that end together are told of together, so that a window may
hold some launches of its neighbours.
"""

from __future__ import annotations

import cProfile
import itertools
import json
import os
import pstats
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import click

from agent.campaign import Campaign
from agent.cluster_study import fleet_of
from agent.fleet import Fleet
from agent.home import Home
from agent.interruption import Interruption
from agent.propose.history import History
from agent.propose.order import Stop
from agent.reasons import Reason
from agent.recovery import own_lease
from agent.session import SessionOptions
from agent.spec import load_spec
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Kind, Trial
from agent.studies import make_plan
from runners.local_pool import LadderPool
from runners.ray_pool import RayPool
from runners.registry import make_runner
from tests.support.pool_in_here import PoolInHere
from tests.support.ray_cluster import ray_cluster

WORKERS_EACH = 2
"""CPUs that a raylet offers: as many worker processes answer at the same time."""


@dataclass(frozen=True)
class Moment:
    """The clocks when so many launches were closed."""

    launches: int
    probes: int
    wall_s: float
    cpu_s: float
    """Of the agent's own thread."""


@dataclass
class Clock:
    """An observer that only reads the clocks."""

    every: int
    moments: list[Moment] = field(default_factory=list)
    launches: int = 0
    probes: int = 0

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Nothing."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """Note the clocks now and then."""
        if trial.work.kind is Kind.PROBE:
            self.probes += 1
            return
        self.launches += trial.counts
        if self.launches % self.every == 0:
            self.note()

    def note(self) -> None:
        """Note the clocks."""
        self.moments.append(Moment(self.launches, self.probes, time.monotonic(), time.thread_time()))

    def tick(self) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Figures:
    """What a study of this size cost, over all and window by window."""

    trials: int
    in_flight: int
    wall_s: float
    trials_per_s: float
    agent_cpu_share: float
    """CPU seconds of the agent's thread for each second of the study."""
    cpu_ms_each: list[tuple[int, float]]
    """(launches closed at its end, CPU milliseconds for each launch of the window)."""
    early_ms: float
    """Cost of a launch in the window that ends at a thousand launches, or in the first where there are fewer."""
    late_ms: float
    """Cost of a launch in the last window."""
    growth: float
    """Late by early."""
    lost: int
    """Trials that were opened and never closed, or closed as lost with a node or a task."""
    doubled: int
    """Pieces of work of which the same was asked for twice."""
    peak_mib: float
    best: float | None
    stopped: str


@contextmanager
def pool_of(
    here: bool, raylets: int, gpus: int, store: StudyStore, slots: int
) -> Iterator[tuple[RayPool, Fleet | None]]:
    """Keep a place to run: this process, or a cluster of so many raylets."""
    if here:
        yield cast(RayPool, PoolInHere(make_runner("replay"))), None
        return
    with ExitStack() as stack:
        cluster = stack.enter_context(ray_cluster())
        for _ in range(raylets):
            cluster.add(num_cpus=WORKERS_EACH, num_gpus=gpus // raylets)
        os.environ.update(cluster.variables)
        pool = LadderPool(cluster.address)
        pool.start()
        stack.callback(pool.stop)
        options = SessionOptions(tracking_uri="", ray_address=cluster.address, slots=slots)
        yield pool, fleet_of(store, pool, options, click.echo)


@dataclass(frozen=True)
class Size:
    """What is run, and on how much."""

    trials: int
    node: str
    here: bool
    raylets: int
    gpus: int
    in_flight: int
    seed: int
    minutes: float


def run(size: Size, folder: Path) -> Figures:
    """Run one study, for so many minutes at most, and return its figures."""
    home = Home(folder)
    home.create()
    wanted = {"engine": "replay", "node": size.node, "budget": size.trials, "seed": size.seed}
    plan = make_plan(load_spec(None, wanted), home)
    store = StudyStore.create(open_storage(plan.storage_url), plan.storage_url, plan.manifest)
    store.set_attribute(BUDGET, size.trials)
    clock = Clock(every=max(1, min(500, size.trials // 20)))
    slots = size.in_flight if size.here else max(1, size.in_flight // size.raylets)
    with pool_of(size.here, size.raylets, size.gpus, store, slots) as (pool, fleet):
        campaign = Campaign(
            store=store,
            runner=make_runner("replay"),
            pool=pool,
            home=home,
            lease=own_lease(),
            environment={},
            observers=(clock,),
            interruption=Interruption(),
            slots=slots,
            fleet=fleet,
            deadline=time.monotonic() + 60.0 * size.minutes,
        )
        clock.note()
        stop = campaign.run()
        clock.note()
    return figures_of(clock, campaign, stop, size.in_flight)


def figures_of(clock: Clock, campaign: Campaign, stop: Stop, in_flight: int) -> Figures:
    """Return what the clocks say."""
    moments = [clock.moments[0], *{each.launches: each for each in clock.moments[1:]}.values()]
    windows = [
        (late.launches, 1e3 * (late.cpu_s - early.cpu_s) / (late.launches - early.launches))
        for early, late in itertools.pairwise(moments)
        if late.launches - early.launches >= max(1, clock.every // 2)
    ]
    first, last = moments[0], moments[-1]
    wall = last.wall_s - first.wall_s
    reference = next((cost for launches, cost in windows if launches >= 1000), windows[0][1])
    history = campaign.history()
    best, stored = history.incumbent, (*campaign.store.trials(), *campaign.store.probes())
    return Figures(
        trials=last.launches,
        in_flight=in_flight,
        wall_s=round(wall, 1),
        trials_per_s=round(last.launches / wall, 2),
        agent_cpu_share=round((last.cpu_s - first.cpu_s) / wall, 3),
        cpu_ms_each=[(launches, round(cost, 1)) for launches, cost in windows],
        early_ms=round(reference, 1),
        late_ms=round(windows[-1][1], 1),
        growth=round(windows[-1][1] / reference, 2),
        lost=sum(map(is_lost, stored)),
        doubled=doubled(campaign.store.trials()) + doubled(campaign.store.probes()),
        peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 0),
        best=None if best is None else round(max(map(history.mean, history.measured)), 2),
        stopped=stop.why,
    )


def is_lost(trial: Trial) -> bool:
    """Return whether a trial was opened and nothing came of it."""
    failure = trial.outcome.failure if trial.outcome is not None else None
    return not trial.is_closed or trial.is_our_fault or (failure is not None and failure.reason is Reason.NODE_LOST)


def doubled(trials: Sequence[Trial]) -> int:
    """Return how many trials that count asked for what another one of the study had asked for."""
    asked = Counter(trial.work.asked_identity for trial in trials if trial.counts)
    return sum(number - 1 for number in asked.values())


@click.command()
@click.option("--trials", type=int, multiple=True, default=(1000,))
@click.option("--node", default="pcie8-blackwell-cuda128")
@click.option("--here", is_flag=True, help="Answer in this process, without Ray.")
@click.option("--raylets", type=int, default=8)
@click.option("--gpus", type=int, default=400, help="Of all raylets together.")
@click.option("--in-flight", type=int, default=50)
@click.option("--seed", type=int, default=0)
@click.option("--minutes", type=float, default=600.0, help="After which nothing new is started.")
@click.option("--profile", is_flag=True, help="Print where the time goes.")
def main(
    trials: tuple[int, ...],
    node: str,
    here: bool,
    raylets: int,
    gpus: int,
    in_flight: int,
    seed: int,
    minutes: float,
    profile: bool,
) -> None:
    """Print the figures as JSON, a line a study."""
    for number in trials:
        with tempfile.TemporaryDirectory(prefix="replay-cluster-") as folder:
            profiler = cProfile.Profile(time.thread_time) if profile else None
            if profiler is not None:
                profiler.enable()
            found = run(Size(number, node, here, raylets, gpus, in_flight, seed, minutes), Path(folder))
            if profiler is not None:
                profiler.disable()
                pstats.Stats(profiler).sort_stats("cumulative").print_stats(70)
            click.echo(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
