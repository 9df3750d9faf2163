"""What trials at the same time cost the search: regret after 40 launches on modelled nodes, by how many run at once.

    python -m tests.benchmarks.side_by_side --generated 100:110 --seeds 2 --processes 2

For comparison the same without believing in what is running (its neighbours are then proposed as well). Launches end in
the order in which they began.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cached_property, lru_cache

from agent.propose.in_flight import InFlight
from agent.summary import summarise
from search_spaces import Assignment, NodeModel, true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from tests.support.modelled_study import ModelledStudy

AT_ONCE = (1, 2, 4, 8)


Job = tuple[int, int, int, int, bool]
"""Seed of the node, seed of the study, launches, trials at the same time, whether what runs is believed in."""


def main() -> None:
    """Print a line for each number of trials at the same time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--generated", default="100:110", help="seeds of generated nodes, FIRST:LAST")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    first, _, last = given.generated.partition(":")
    studies = [(node, seed) for node in range(int(first), int(last)) for seed in range(given.seeds)]
    lines = [(at_once, True) for at_once in AT_ONCE] + [(at_once, False) for at_once in AT_ONCE[1:]]
    jobs = [(*study, given.budget, *line) for line in lines for study in studies]
    with ProcessPoolExecutor(given.processes) as pool:
        found = dict(zip(jobs, pool.map(regret_of, jobs, chunksize=1), strict=True))
    print(f"{len(studies)} studies of {given.budget} launches a line; error: of the mean, one standard deviation")
    alone = [found[*study, given.budget, 1, True] for study in studies]
    for line in lines:
        regrets = [found[*study, given.budget, *line] for study in studies]
        print(f"{name_of(*line):<42} {words_of(regrets, alone)}", flush=True)


def name_of(at_once: int, believes: bool) -> str:
    """Return a line's name."""
    return f"{at_once} at once{'' if believes else ', not believing in what runs'}"


def words_of(regrets: list[float], alone: list[float]) -> str:
    """Return what some studies miss of the best, and how much more that is than the same studies one at a time do."""
    more = [one - other for one, other in zip(regrets, alone, strict=True)]
    median, mean = statistics.median(regrets), statistics.fmean(regrets)
    compared = f"more than one at a time: {statistics.fmean(more):+.1%} ± {error(more):.1%}"
    return f"regret: median {median:.1%}, mean {mean:.1%} ± {error(regrets):.1%}; {compared}"


def error(figures: list[float]) -> float:
    """Return the standard error of a mean."""
    return statistics.stdev(figures) / math.sqrt(len(figures)) if len(figures) > 1 else 0.0


def regret_of(job: Job) -> float:
    """Return the share of the true best that the declared best of a study misses."""
    *study, believes = job
    with believing(believes):
        return regret(*study)


def regret(seed_of_node: int, seed: int, budget: int, at_once: int) -> float:
    """Return the share of the true best that the declared best of a study misses."""
    node, top = _node(seed_of_node)
    study = ModelledStudy(node=node, budget=budget, seed=seed, slots=at_once)
    study.run()
    arm = summarise(study.history(), "study").best
    return 1.0 - ((true_value(node, arm.assignment) or 0.0) / top if arm else 0.0)


@contextmanager
def believing(is_believed: bool) -> Iterator[None]:
    """Run without what is expected of launches in flight, where asked to."""
    kept = InFlight.__dict__["pending"]
    if not is_believed:
        none = cached_property(_nothing)
        none.__set_name__(InFlight, "pending")
        InFlight.pending = none  # type: ignore[assignment]
    try:
        yield
    finally:
        InFlight.pending = kept


def _nothing(_: InFlight) -> list[Assignment]:
    return []


@lru_cache(maxsize=64)
def _node(seed: int) -> tuple[NodeModel, float]:
    node = generate(seed)
    top = best(node)
    assert top is not None, f"nothing works on the generated node {seed}"
    return node, top.value


if __name__ == "__main__":
    main()
