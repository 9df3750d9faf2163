"""Any mix of trials on eight GPUs in simulated time: busy while somebody waits, nothing given twice, nobody starves."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from runners.slot_queue import PATIENCE, SlotQueue
from runners.slots import NodeSlots
from tests.support.packed_node import NODES, Job, pack

WIDTHS = (1, 2, 4, 8)
DEPTH = 24
"""Trials that wait: with fewer, what fits may not be among them."""
MIXES = st.lists(st.integers(0, 10), min_size=4, max_size=4).filter(any)


def jobs(shares: list[int], seed: int, spread: float, number: int) -> list[Job]:
    """Return trials whose widths come in these shares and whose durations differ by this much (as logarithms)."""
    rng = random.Random(seed)
    widths = rng.choices(WIDTHS, shares, k=number)
    return [Job(width, 300.0 * min(4.0, rng.lognormvariate(0.0, spread))) for width in widths]


@settings(max_examples=15, deadline=None)
@given(MIXES, st.sampled_from(sorted(NODES)), st.integers(0, 2**32), st.floats(0.0, 0.7))
def test_while_trials_wait_the_gpus_are_busy(shares: list[int], node: str, seed: int, spread: float) -> None:
    """At least 95 % of their time, whatever the mix; that nothing is given twice is checked at every start.

    Over a thousand trials: room that was made for a wide one at the very end has not paid yet.
    """
    assert pack(NODES[node], jobs(shares, seed, spread, 1000), DEPTH).share >= 0.95


@settings(max_examples=30, deadline=None)
@given(MIXES, st.sampled_from(sorted(NODES)), st.integers(0, 2**32), st.floats(0.0, 1.0), st.integers(1, DEPTH))
def test_nobody_is_overtaken_for_ever(shares: list[int], node: str, seed: int, spread: float, depth: int) -> None:
    """Trials that came later use the node for so many times the longest trial at most, and what runs then ends."""
    wanted = jobs(shares, seed, spread, 200)
    found = pack(NODES[node], wanted, depth)
    longest = max(job.seconds for job in wanted)
    assert sorted(found.order) == list(range(len(wanted)))
    assert max(found.overtaken.values(), default=0.0) <= (PATIENCE + 3) * longest * 8


def test_a_trial_of_all_gpus_among_many_of_one_does_not_wait_for_the_last_of_them() -> None:
    """Two hundred single trials come after it."""
    wanted = [Job(1, 300.0)] * 10 + [Job(8, 300.0)] + [Job(1, 300.0 + number % 7) for number in range(200)]
    found = pack(NODES["switches"], wanted, DEPTH)
    assert found.order.index(10) < 100
    assert found.waited[10] <= (PATIENCE + 2) * 306.0


def test_trials_of_one_width_come_first_come_first_served() -> None:
    """There is no reason for any other order."""
    assert pack(NODES["switches"], jobs([0, 1, 0, 0], 3, 0.5, 50), 8).order == list(range(50))


def test_never_more_than_asked_for_run_at_the_same_time() -> None:
    """Although there are GPUs for more."""
    queue = SlotQueue(NodeSlots(NODES["switches"], is_shared=True), most_at_once=2)
    for job in range(4):
        queue.put(job, 1, 0.0)
    assert [job for job, _ in queue.start(0.0)] == [0, 1]
    assert not queue.has_room(1)
    queue.end(0, 10.0)
    assert [job for job, _ in queue.start(10.0)] == [2]
