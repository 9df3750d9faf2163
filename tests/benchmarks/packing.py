"""How well trials of 1, 2, 4 and 8 ranks are packed on a node with eight GPUs: python -m tests.benchmarks.packing

In simulated time, with the queue that places real trials (`runners.slot_queue`). Printed are the share of the GPUs'
time that was used while trials waited, how long trials waited, and how far any was overtaken.
"""

from __future__ import annotations

import math
import random
import statistics
import time

from runners.slot_queue import PATIENCE
from tests.support.packed_node import NODES, Job, Packed, pack

WIDTHS = (1, 2, 4, 8)
MIXES = {
    "TP 1 only": (1, 0, 0, 0),
    "TP 1 and 2": (1, 1, 0, 0),
    "TP 2 and 4": (0, 1, 1, 0),
    "TP 4 and 8": (0, 0, 1, 1),
    "TP 1 and 8": (1, 0, 0, 1),
    "one TP 8 in fifty TP 1": (50, 0, 0, 1),
    "as many of each": (1, 1, 1, 1),
    "as much GPU time of each": (8, 4, 2, 1),
    "mostly TP 8": (1, 1, 1, 8),
}
TRIALS, SEEDS, SPREAD, SECONDS = 500, 5, 0.35, 300.0
"""Trials of a run, runs, spread of the durations (of their logarithms), and the median duration."""
DEPTHS = (24, 8, 2)
"""Trials that wait."""
OTHERS = {
    "first come, first served": {"idle_share": 1e9, "patience": math.inf},
    "whatever fits, widest first": {"idle_share": 0.0, "patience": math.inf},
}
"""Plain policies, for comparison."""


def jobs(shares: tuple[int, ...], seed: int) -> list[Job]:
    """Return the trials of a run."""
    rng = random.Random(seed)
    widths = rng.choices(WIDTHS, shares, k=TRIALS)
    return [Job(width, SECONDS * rng.lognormvariate(0.0, SPREAD)) for width in widths]


def row(name: str, shares: tuple[int, ...], layout: str, depth: int, **policy: float) -> str:
    """Return one line of the table: the least and the mean share of all runs, and the longest of each wait."""
    mixes = [jobs(shares, seed) for seed in range(SEEDS)]
    runs = [(wanted, pack(NODES[layout], wanted, depth, **policy)) for wanted in mixes]
    used = [found.share for _, found in runs]
    overtaken = max(_overtaken(wanted, found) for wanted, found in runs)
    widest = max(width for width, share in zip(WIDTHS, shares, strict=True) if share)
    waits = [wait for wanted, found in runs for job, wait in found.waited.items() if wanted[job].ranks == widest]
    return (
        f"{name:<26} {layout:<9} {depth:>3}   {statistics.fmean(used):.1%} (least {min(used):.1%})   "
        f"TP {widest} waits {statistics.fmean(waits) / SECONDS:4.1f}, at most {max(waits) / SECONDS:4.1f} trials   "
        f"overtaken at most {overtaken:4.1f} of {PATIENCE}"
    )


def _overtaken(wanted: list[Job], found: Packed) -> float:
    """Return how many times the longest trial the whole node was used by others that came later."""
    return max(found.overtaken.values(), default=0.0) / (8 * max(job.seconds for job in wanted))


def main() -> None:
    """Print the table."""
    began = time.perf_counter()
    print(f"{TRIALS} trials a run, {SEEDS} runs a row, durations {SECONDS:.0f} s with a spread of {SPREAD:.0%}\n")
    for depth in DEPTHS:
        for name, shares in MIXES.items():
            print(row(name, shares, "switches", depth), flush=True)
        print()
    for layout in ("sockets", "NVLink"):
        for name, shares in MIXES.items():
            print(row(name, shares, layout, DEPTHS[0]), flush=True)
        print()
    for other, policy in OTHERS.items():
        print(f"for comparison: {other}")
        for name, shares in MIXES.items():
            print(row(name, shares, "switches", DEPTHS[0], **policy), flush=True)
        print()
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
