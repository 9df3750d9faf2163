"""How good the declared best is after 40 launches, and what it costs, against what others would do.

    python -m tests.benchmarks.search_efficiency --seeds 20
    python -m tests.benchmarks.search_efficiency --generated 100:110 --seeds 3

Every strategy gets the same modelled nodes, seeds and budget in one run. Regret is the share of the true best objective
that the declared best misses (without noise). Node time is modelled; a study that never reaches a regret counts as
unreached, and medians over unreached ones say so.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import Pool

from agent.store.trial import Kind, Trial
from agent.summary import summarise
from runners import Rung
from search_spaces import Assignment, NodeModel, load_node, true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from search_spaces.node_loader import shipped_nodes
from tests.benchmarks.plain_strategies import STRATEGIES, Launches
from tests.support.modelled_study import ModelledStudy

BUDGET = 40
OURS = "agent"
REACHED = (0.10, 0.05)
KNOWN = 2
"""Failures of one planted cause after which a further one was avoidable."""


@dataclass(frozen=True, slots=True)
class Run:
    """One study of one strategy."""

    node: str
    strategy: str
    regret: float
    hours: float
    hours_to: tuple[float, ...]
    """Node time until a launch came this close to the best, for each of REACHED; infinite where none did."""
    known: float
    """Share of the node time spent on failures whose cause had failed twice before."""
    confirming: float
    """Share of it spent on launches that only confirm or repeat."""
    probing: float
    failures: int


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", nargs="*", default=None, help="shipped nodes; by default all of them")
    parser.add_argument("--generated", help="seeds of generated nodes, FIRST:LAST, instead of shipped ones")
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    names = [str(seed) for seed in _seeds(given.generated)] if given.generated else given.nodes or list(shipped_nodes())
    jobs = [(name, seed, strategy) for name in names for seed in range(given.seeds) for strategy in (OURS, *STRATEGIES)]
    with Pool() as pool:
        runs = pool.starmap(run, jobs, chunksize=1)
    print(f"{len(names)} nodes x {given.seeds} seeds, {BUDGET} launches, modelled; regret as median [80 % interval]\n")
    print(_by_node(runs))
    print(_overall(runs))


def run(name: str, seed: int, strategy: str) -> Run:
    """Run one study."""
    node, top = _node(name)
    if strategy == OURS:
        study = ModelledStudy(node=node, budget=BUDGET, seed=seed)
        study.run()
        arm = summarise(study.history(), "study").best
        trials = sorted([*study.trials, *study.probes], key=lambda trial: trial.started_at)
        return _measured(node, top, strategy, arm.assignment if arm else None, list(_steps(trials)))
    launches = Launches(node, BUDGET, seed)
    STRATEGIES[strategy](launches)
    found = [(outcome.value, point) for point, outcome, _ in launches.tried.values() if outcome.value is not None]
    declared = max(found, key=lambda pair: pair[0])[1] if found else None
    steps = [(point, record.wall_s, "launch") for point, _, record in launches.tried.values()]
    return _measured(node, top, strategy, declared, steps)


def _steps(trials: Sequence[Trial]) -> Iterator[tuple[Assignment, float, str]]:
    for trial in trials:
        seconds = trial.record.wall_s if trial.record else 0.0
        kind = "probe" if trial.work.rung is Rung.PROBE else "launch"
        if kind == "launch" and trial.work.kind in (Kind.CONFIRM, Kind.REPEAT):
            kind = "confirm"
        yield trial.work.resolved, seconds, kind


def _measured(
    node: NodeModel, top: float, strategy: str, declared: Assignment | None, steps: list[tuple[Assignment, float, str]]
) -> Run:
    seen: Counter[str] = Counter()
    spent = known = 0.0
    by_kind: Counter[str] = Counter()
    hours_to = [math.inf] * len(REACHED)
    failures = 0
    for point, seconds, kind in steps:
        spent += seconds
        by_kind[kind] += seconds  # type: ignore[assignment]
        if kind == "probe":
            continue
        effective, _ = node.answers.resolved(point)
        cause = next((f.name for f in node.answers.matching(effective, "full") if not f.is_flaky), None)
        if cause is not None:
            failures += 1
            known += seconds if seen[cause] >= KNOWN and kind == "launch" else 0.0
            seen[cause] += 1
            continue
        value = true_value(node, point) or 0.0
        for index, regret in enumerate(REACHED):
            if value >= (1 - regret) * top:
                hours_to[index] = min(hours_to[index], spent / 3600)
    value = (true_value(node, declared) or 0.0) if declared else 0.0
    return Run(
        node=node.name,
        strategy=strategy,
        regret=1 - value / top,
        hours=spent / 3600,
        hours_to=tuple(hours_to),
        known=known / spent,
        confirming=by_kind["confirm"] / spent,
        probing=by_kind["probe"] / spent,
        failures=failures,
    )


@lru_cache(maxsize=4)
def _node(name: str) -> tuple[NodeModel, float]:
    node = generate(int(name)) if name.isdigit() else load_node(name)
    assert isinstance(node, NodeModel)
    top = best(node)
    assert top is not None, f"nothing works on {name}"
    return node, top.value


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last))


def _by_node(runs: list[Run]) -> str:
    strategies = (OURS, *STRATEGIES)
    lines = ["| node | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for node in dict.fromkeys(run.node for run in runs):
        cells = [_interval([r.regret for r in runs if r.node == node and r.strategy == s]) for s in strategies]
        lines.append(f"| {node} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _interval(values: Sequence[float]) -> str:
    """Return a median with a bootstrap interval of it, in per cent."""
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(400))
    return f"{100 * statistics.median(values):.1f} [{100 * medians[40]:.1f}, {100 * medians[360]:.1f}] %"


def _overall(runs: list[Run]) -> str:
    header = ("strategy", "median regret", "mean", "h to 10 %", "h to 5 %", "unreached 10 / 5 %", "known dead", "")
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for strategy in (OURS, *STRATEGIES):
        mine = [run for run in runs if run.strategy == strategy]
        hours = [_hours([run.hours_to[index] for run in mine]) for index in range(len(REACHED))]
        unreached = [sum(math.isinf(run.hours_to[index]) for run in mine) / len(mine) for index in range(len(REACHED))]
        apart = f"confirming {statistics.fmean(r.confirming for r in mine):.1%}, probing "
        apart += f"{statistics.fmean(r.probing for r in mine):.1%}" if strategy == OURS else ""
        cells = (
            strategy,
            _interval([run.regret for run in mine]),
            f"{statistics.fmean(run.regret for run in mine):.1%}",
            *hours,
            " / ".join(f"{share:.0%}" for share in unreached),
            f"{statistics.fmean(run.known for run in mine):.1%}",
            apart if strategy == OURS else "",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _hours(values: Sequence[float]) -> str:
    middle = statistics.median(values)
    return "unreached" if math.isinf(middle) else f"{middle:.1f}"


if __name__ == "__main__":
    main()
