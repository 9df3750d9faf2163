"""How good the declared best is after 40 launches, and what it costs, against what others would do.

    python -m tests.benchmarks.search_efficiency --seeds 20 --workers 16 --into studies.jsonl
    python -m tests.benchmarks.search_efficiency --generated 100:110 --seeds 3

Every strategy gets the same modelled nodes, seeds and budget in one run. Regret is the share of the true best objective
that the declared best misses (without noise). Node time is modelled. With `--into`, each finished study is a line of
that file; the same command goes on where it was stopped. `search_table` prints the tables of such a file again.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from agent.propose import improve
from agent.store.trial import Kind, Trial
from agent.summary import summarise
from runners import Rung
from search_spaces import Assignment, NodeModel, load_node, true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from search_spaces.node_loader import shipped_nodes
from tests.benchmarks.other_steps import STEPS, launches_by
from tests.benchmarks.plain_strategies import STRATEGIES, Launches
from tests.benchmarks.search_table import OURS, REACHED, Run, line_of, runs_in, tables
from tests.support.modelled_study import ModelledStudy

BUDGET = 40
KNOWN = 2
"""Failures of one planted cause after which a further one was avoidable."""

Job = tuple[str, int, str, int]
"""Node, seed, strategy and budget of one study."""


def main() -> None:
    """Run what is missing and print the tables."""
    given = _options()
    names = given.nodes or list(shipped_nodes())
    names = [str(seed) for seed in _seeds(given.generated)] if given.generated else names
    jobs = [
        (name, seed, strategy, given.budget)
        for strategy in given.strategies  # ours first: its studies take longest
        for seed in range(given.seeds)
        for name in names
    ]
    into = Path(given.into) if given.into else None
    done = {run.key: run for run in (runs_in(into) if into and into.exists() else ())}
    missing = [job for job in jobs if job not in done]
    if into and into.exists():
        into.write_text("".join(line_of(each) for each in done.values()), encoding="utf-8")  # drops a line cut off
    for found in _studies(missing, given.workers):
        done[found.key] = found
        if into:
            with into.open("a", encoding="utf-8") as file:
                file.write(line_of(found))
    print(tables([done[job] for job in jobs]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", nargs="*", default=None, help="shipped nodes or files; by default all shipped ones")
    parser.add_argument("--generated", help="seeds of generated nodes, FIRST:LAST, instead of shipped ones")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes; by default one for each core")
    parser.add_argument("--into", help="file of results, JSON lines; what stands there already is not run again")
    usual, more = (OURS, *STRATEGIES), tuple(STEPS)
    about = f"of: {', '.join(usual)} (these by default); {', '.join(more)}"
    parser.add_argument("--strategies", nargs="*", default=usual, choices=(*usual, *more), metavar="NAME", help=about)
    return parser.parse_args()


def _studies(jobs: Sequence[Job], workers: int) -> Iterator[Run]:
    """Yield the studies as they end. One thread each: many small matrices, and the cores are taken already."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for number, found in enumerate(pool.imap_unordered(run, jobs), start=1):
            yield found
            if number % 20 == 0 or number == len(jobs):
                print(f"{number} of {len(jobs)} studies", file=sys.stderr, flush=True)


def run(job: Job) -> Run:
    """Run one study."""
    name, seed, strategy, budget = job
    node, top = _node(name)
    began = time.process_time()
    if strategy == OURS or strategy in STEPS:
        study = ModelledStudy(node=node, budget=budget, seed=seed)
        with launches_by(STEPS.get(strategy, improve.propose)):
            study.run()
        arm = summarise(study.history(), "study").best
        declared = arm.assignment if arm else None
        steps = list(_steps(sorted([*study.trials, *study.probes], key=lambda trial: trial.started_at)))
    else:
        launches = Launches(node, budget, seed)
        STRATEGIES[strategy](launches)
        found = [(outcome.value, point) for point, outcome, _ in launches.tried.values() if outcome.value is not None]
        declared = max(found, key=lambda pair: pair[0])[1] if found else None
        steps = [(point, record.wall_s, "launch") for point, _, record in launches.tried.values()]
    return _measured(job, node, top, declared, steps, time.process_time() - began)


def _steps(trials: Sequence[Trial]) -> Iterator[tuple[Assignment, float, str]]:
    for trial in trials:
        seconds = trial.record.wall_s if trial.record else 0.0
        kind = "probe" if trial.work.rung is Rung.PROBE else "launch"
        if kind == "launch" and trial.work.kind is Kind.PROBE and not trial.work.climbs:
            kind = "experiment"  # of the map, with made-up weights: what is dead there is not known yet
        if kind == "launch" and trial.work.kind in (Kind.CONFIRM, Kind.REPEAT):
            kind = "confirm"
        yield trial.work.resolved, seconds, kind


def _measured(
    job: Job,
    node: NodeModel,
    top: float,
    declared: Assignment | None,
    steps: list[tuple[Assignment, float, str]],
    cpu_s: float,
) -> Run:
    seen: Counter[str] = Counter()
    spent = known = 0.0
    by_kind = dict.fromkeys(("probe", "experiment", "confirm", "launch"), 0.0)
    hours_to = [math.inf] * len(REACHED)
    failures, best_value = 0, 0.0
    for point, seconds, kind in steps:
        spent += seconds
        by_kind[kind] += seconds
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
        best_value = max(best_value, value)
        for index, regret in enumerate(REACHED):
            if value >= (1 - regret) * top:
                hours_to[index] = min(hours_to[index], spent / 3600)
    value = (true_value(node, declared) or 0.0) if declared else 0.0
    return Run(
        job=job[0],
        node=node.name,
        seed=job[1],
        strategy=job[2],
        budget=job[3],
        regret=1 - value / top,
        best_regret=1 - best_value / top,
        hours=spent / 3600,
        hours_to=tuple(hours_to),
        known=known / spent,
        confirming=by_kind["confirm"] / spent,
        probing=(by_kind["probe"] + by_kind["experiment"]) / spent,
        failures=failures,
        cpu_s=cpu_s,
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


if __name__ == "__main__":
    main()
