"""What it costs the search that a long study shows its models a bounded number of rows, and its map one of failures.

    python -m tests.benchmarks.bounded_view --generated 100:106 --seeds 2 --budget 300 --budget 600 --processes 24

The same studies on modelled nodes with the bounds and without: regret at the end, and how many of the planted failures
that the launches met are on the map as they were planted. `--random 400` begins each study with that many random
launches, most of which fail: a search of its own meets too few failures for their bound to matter.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

from agent.deadends import turns
from agent.propose import communication, improve, model_based
from agent.store.trial import Kind, Work
from agent.summary import summarise
from runners import Rung
from search_spaces import true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from tests.benchmarks.dead_end_map import causes_met, is_equal
from tests.benchmarks.map_speed import random_point
from tests.benchmarks.side_by_side import error
from tests.support.modelled_study import ModelledStudy

ROWS = (
    (improve, "BEST_ROWS"),
    (improve, "LATEST_ROWS"),
    (communication, "BEST_ROWS"),
    (communication, "LATEST_ROWS"),
    (model_based, "BEST_ROWS"),
    (model_based, "RECENT_ROWS"),
)
FAILURES = ((turns, "MOST_ALIKE"),)
WITHOUT = {"rows": ROWS, "failures": FAILURES}
"""What is left unbounded."""
UNBOUNDED = 1_000_000


@dataclass(frozen=True)
class Result:
    """What became of a study."""

    regret: float
    met: int
    """Planted failures that its launches met, flaky ones left out."""
    found: int
    """Those of them that are confirmed on its map as they were planted."""
    seconds: float


Job = tuple[int, int, int, int, str]
"""Seed of the node, seed of the study, launches, random launches before, what is left unbounded."""


@contextmanager
def unbounded(what: str) -> Iterator[None]:
    """Run without some bounds; with all of them where `what` is empty."""
    with ExitStack() as stack:
        for module, name in WITHOUT.get(what, ()):
            stack.enter_context(mock.patch.object(module, name, UNBOUNDED))
        yield


def run(job: Job) -> Result:
    """Run one study."""
    seed_of_node, seed, budget, num_random, what = job
    node, began = generate(seed_of_node), time.process_time()
    top = best(node)
    assert top is not None, f"nothing works on the generated node {seed_of_node}"
    with unbounded(what):
        study = ModelledStudy(node=node, budget=budget + num_random, seed=seed)
        generator = study.history().random("random launches")
        for _ in range(num_random):
            point = random_point(node, generator)
            if node.space.violation(point, node.facts) is None:
                study.launch(Work(kind=Kind.SEARCH, rung=Rung.FULL, requested=point, resolved=point))
        study.run()
        history = study.history()
    arm = summarise(history, "study").best
    regret = 1.0 - ((true_value(node, arm.assignment) or 0.0) / top.value if arm else 0.0)
    met = {each.name: each for each in causes_met(node, study) if not each.is_flaky}.values()
    found = sum(any(is_equal(node, dead_end, each) for dead_end in history.atlas.confirmed) for each in met)
    return Result(regret, len(met), found, time.process_time() - began)


def main() -> None:
    """Print a line for each budget and bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--generated", default="100:106", help="seeds of generated nodes, FIRST:LAST")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--budget", type=int, action="append", help="launches of a study (again for more)")
    parser.add_argument("--random", type=int, default=0, help="random launches before")
    parser.add_argument("--without", choices=sorted(WITHOUT), default="rows", help="what is left unbounded")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    first, _, last = given.generated.partition(":")
    studies = [(node, seed) for node in range(int(first), int(last)) for seed in range(given.seeds)]
    budgets = given.budget or [300, 600]
    jobs = [(*study, each, given.random, what) for each in budgets for what in ("", given.without) for study in studies]
    with ProcessPoolExecutor(given.processes) as pool:
        found = dict(zip(jobs, pool.map(run, jobs, chunksize=1), strict=True))
    print(f"{len(studies)} studies a line, {given.random} random launches before")
    for budget in budgets:
        pairs = [
            (found[*each, budget, given.random, ""], found[*each, budget, given.random, given.without])
            for each in studies
        ]
        for name, results in zip(
            ("bounded", f"without a bound of {given.without}"), zip(*pairs, strict=True), strict=True
        ):
            print(f"{budget} launches, {name:<28} {words_of(results)}", flush=True)
        more = [bounded.regret - free.regret for bounded, free in pairs]
        print(f"{budget} launches, bounded loses {statistics.fmean(more):+.2%} ± {error(more):.2%}", flush=True)


def words_of(results: tuple[Result, ...]) -> str:
    """Return what some studies came to."""
    regrets = [each.regret for each in results]
    met, found = sum(each.met for each in results), sum(each.found for each in results)
    return (
        f"regret: median {statistics.median(regrets):.2%}, mean {statistics.fmean(regrets):.2%}; "
        f"on the map {found} of {met} met; {statistics.fmean(each.seconds for each in results):.0f} CPU s each"
    )


if __name__ == "__main__":
    main()
