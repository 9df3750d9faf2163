"""What the ladder saves on modelled nodes: regret after 40 launches and node time to 5 % regret, with and without it.

    python -m tests.benchmarks.ladder --seeds 3
    python -m tests.benchmarks.ladder --seeds 3 --budget 160
    python -m tests.benchmarks.ladder --nodes h200-x2-sglang generated-small-1 --seeds 2 --processes 1

The same nodes, seeds and budget for: all rungs; without dummy launches (probe and full); and launches alone. Node time
is modelled and counts every rung; a study that never gets there is censored at its end.
Regret is the share of the true best objective that the declared best misses.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import Pool

from agent.rungs import costs_of
from agent.settings import StudySettings
from agent.summary import summarise
from runners import Rung
from runners.replay_runner import ReplayRunner
from search_spaces import NodeModel, load_node, true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from search_spaces.node_loader import shipped_nodes
from tests.support.modelled_study import ModelledRunner, ModelledStudy

BUDGET, REACHED = 40, 0.05
WAYS = ("all rungs", "without dummy", "launches only")


class WithoutDummy(ModelledRunner):
    """The replay engine without its dummy rung."""

    rungs = (Rung.PROBE, Rung.FULL)


@dataclass
class LadderStudy(ModelledStudy):
    """A study on some of the rungs."""

    way: str = field(default=WAYS[0], kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.way == "without dummy":
            self.runner: ReplayRunner = WithoutDummy(self.node)

    @property
    def settings(self) -> StudySettings:
        """All defaults, but for the rung that is climbed from."""
        start = Rung.FULL if self.way == "launches only" else Rung.RESOLVE
        return super().settings.model_copy(update={"start_rung": start})


@dataclass(frozen=True, slots=True)
class Run:
    """One study."""

    node: str
    seed: int
    way: str
    regret: float
    hours: float
    hours_to: float
    """Node time until a launch came within `REACHED` of the best; infinite where none did."""
    cheap: float
    """Share of the node time that the rungs below the top took."""
    failed: int
    """Launches that failed."""
    stopped: int
    """Dummy launches that failed: launches saved."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", nargs="*", default=None, help="shipped nodes; by default all of them")
    parser.add_argument("--generated", help="seeds of generated nodes beside them, FIRST:LAST")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--budget", type=int, default=BUDGET, help="launches; more of them show when 5 %% are reached")
    given = parser.parse_args()
    names = list(shipped_nodes()) if given.nodes is None else given.nodes
    if given.generated:
        first, _, last = given.generated.partition(":")
        names += [str(seed) for seed in range(int(first), int(last))]
    jobs = [(name, seed, way, given.budget) for seed in range(given.seeds) for name in names for way in WAYS]
    runs: list[Run] = []
    with Pool(given.processes) as pool:
        for each in pool.imap_unordered(run, jobs, chunksize=1):
            runs.append(each)
            print(f"# {each}", flush=True)
    print(f"\n{len(names)} nodes x {given.seeds} seeds, {given.budget} launches, modelled; medians\n")
    print(table(runs))
    print(ratios(runs))


def run(job: tuple[str, int, str, int]) -> Run:
    """Run one study."""
    name, seed, way, budget = job
    node = generate(int(name)) if name.isdigit() else load_node(name)
    top = best(node)
    assert top is not None, f"nothing works on {name}"
    study = LadderStudy(node=node, budget=budget, seed=seed, way=way)
    study.run()
    trials = [*study.trials, *study.probes]
    arm, costs = summarise(study.history(), "study").best, costs_of(trials)
    seconds = sum(cost.node_s for cost in costs.values())
    value = true_value(node, arm.assignment) if arm else None
    return Run(
        node=node.name,
        seed=seed,
        way=way,
        regret=1 - (value or 0.0) / top.value,
        hours=seconds / 3600,
        hours_to=_hours_to(node, study, top.value),
        cheap=sum(cost.node_s for rung, cost in costs.items() if rung is not Rung.FULL) / seconds,
        failed=costs[Rung.FULL].failed,
        stopped=costs[Rung.DUMMY].failed if Rung.DUMMY in costs else 0,
    )


def _hours_to(node: NodeModel, study: ModelledStudy, top: float) -> float:
    spent = 0.0
    for trial in sorted((*study.trials, *study.probes), key=lambda trial: trial.started_at):
        spent += trial.record.wall_s if trial.record else 0.0
        is_launch = trial.work.rung is Rung.FULL and trial.is_measured
        if is_launch and (true_value(node, trial.work.resolved) or 0.0) >= (1 - REACHED) * top:
            return spent / 3600
    return math.inf


def table(runs: Sequence[Run]) -> str:
    """Return a row for each node and way, and one for all nodes."""
    lines = ["| node | rungs | regret | h to 5 % | hours | cheap rungs | launches failed | failed as dummies |"]
    lines.append("|---" * 8 + "|")
    for name in [*dict.fromkeys(sorted(run.node for run in runs)), "all"]:
        for way in WAYS:
            mine = [run for run in runs if run.way == way and name in (run.node, "all")]
            cells = (
                name,
                way,
                f"{statistics.median(run.regret for run in mine):.1%}",
                _hours(statistics.median(run.hours_to for run in mine)),
                f"{statistics.median(run.hours for run in mine):.1f}",
                f"{statistics.fmean(run.cheap for run in mine):.1%}",
                f"{statistics.fmean(run.failed for run in mine):.1f}",
                f"{statistics.fmean(run.stopped for run in mine):.1f}",
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ratios(runs: Sequence[Run]) -> str:
    """Return how the ways compare on the same node and seed, against launches alone."""
    found: dict[tuple[str, int], dict[str, Run]] = defaultdict(dict)
    for each in runs:
        found[each.node, each.seed][each.way] = each
    lines = []
    for way in WAYS[:-1]:
        pairs = [(ways[way], ways[WAYS[-1]]) for ways in found.values()]
        mean = [statistics.fmean(side) for side in zip(*((a.regret, b.regret) for a, b in pairs), strict=True)]
        middle = [statistics.median(side) for side in zip(*((a.hours_to, b.hours_to) for a, b in pairs), strict=True)]
        least, most = (statistics.median(ends) for ends in zip(*(_times_as_long(a, b) for a, b in pairs), strict=True))
        reached = [sum(not math.isinf(each.hours_to) for each in side) for side in zip(*pairs, strict=True)]
        both = [a.hours_to / b.hours_to for a, b in pairs if not math.isinf(a.hours_to + b.hours_to)]
        lines.append(
            f"{way} against launches only: mean regret {mean[0]:.1%} / {mean[1]:.1%} = {mean[0] / mean[1]:.2f}; "
            f"hours to 5 % {_hours(middle[0])} / {_hours(middle[1])} (reached by {reached[0]} / {reached[1]} of "
            f"{len(pairs)}; where both did, {statistics.median(both) if both else math.nan:.2f} times as long; "
            f"censored at the study's end, {least:.2f} to {most:.2f} times as long)"
        )
    return "\n".join(lines)


def _times_as_long(a: Run, b: Run) -> tuple[float, float]:
    """Bounds of the ratio of both times to `REACHED`: what a study never reached takes longer than it ran."""
    least = [min(each.hours_to, each.hours) for each in (a, b)]
    return least[0] / b.hours_to, a.hours_to / least[1]


def _hours(hours: float) -> str:
    return "unreached" if math.isinf(hours) else f"{hours:.1f}"


if __name__ == "__main__":
    main()
