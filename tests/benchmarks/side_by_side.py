"""What trials at the same time cost the search: regret after 40 launches on modelled nodes, by how many run at once.

    python -m tests.benchmarks.side_by_side --generated 100:110 --seeds 2

For comparison the same without believing in what is running (its neighbours are then proposed as well). Launches end in
the order in which they began.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache

from agent.propose.in_flight import InFlight
from agent.store.trial import Kind
from agent.summary import summarise
from search_spaces import Assignment, NodeModel, true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from tests.support.modelled_study import ModelledStudy

AT_ONCE = (1, 2, 4, 8)


def main() -> None:
    """Print a line for each number of trials at the same time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--generated", default="100:110", help="seeds of generated nodes, FIRST:LAST")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--budget", type=int, default=40)
    given = parser.parse_args()
    first, _, last = given.generated.partition(":")
    studies = [(node, seed) for node in range(int(first), int(last)) for seed in range(given.seeds)]
    print(f"{len(studies)} studies of {given.budget} launches a line")
    for at_once in AT_ONCE:
        for believes in (True, False) if at_once > 1 else (True,):
            with believing(believes):
                found = [regret(node, seed, given.budget, at_once) for node, seed in studies]
            name = f"{at_once} at once{'' if believes else ', not believing in what runs'}"
            print(
                f"{name:<42} regret: median {statistics.median(found):.1%}, mean {statistics.fmean(found):.1%}",
                flush=True,
            )


def regret(seed_of_node: int, seed: int, budget: int, at_once: int) -> float:
    """Return the share of the true best that the declared best of a study misses."""
    node, top = _node(seed_of_node)
    study = ModelledStudy(node=node, budget=budget, seed=seed, slots=at_once)
    study.run()
    keys = [trial.work.key for trial in study.trials if trial.work.kind is not Kind.REPEAT]
    print(f"node {seed_of_node} seed {seed}: {len(set(keys))} assignments", file=sys.stderr)
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
