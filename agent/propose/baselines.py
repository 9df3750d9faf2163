"""The baseline again, over the study's time: its agreement with itself, the noise, and whether the node drifts.

The second launch comes at once: how far two launches of the same thing agree is the tolerance for everybody's output.
Another one comes half-way. They are taken from the share that is kept for repeats.
"""

from __future__ import annotations

from agent.propose import sums
from agent.propose.history import ATTEMPTS, History
from agent.store.trial import Kind, Trial, Work

LEAST_SHARE, HALF_WAY_SHARE = 2, 6
"""Launches kept for repeats from which on the baseline is launched again at once, and half-way as well."""


def again(history: History) -> Work | None:
    """Return the baseline's next launch where one is due, or None."""
    key = history.baseline_key
    if key is None or len(repeats(history, key)) >= _due(history):
        return None
    work = next_repeat(history, key, "the baseline again")
    may_run = history.interruptions[work.identity] < ATTEMPTS and not history.in_flight.holds(work)
    return work if may_run else None


def repeats(history: History, key: str | None) -> list[Trial]:
    """Return an assignment's repeats, those that failed or are in flight included."""
    return sums.repeats(history, key)


def next_repeat(history: History, key: str, stage: str) -> Work:
    """Return one more launch of an assignment that was measured."""
    first = sums.first_measured(history, key)
    return first.work.again(Kind.REPEAT, len(repeats(history, key)), stage)


def _due(history: History) -> int:
    share = int(history.settings.contender_share * history.budget)
    if share < LEAST_SHARE:
        return 0
    is_half_way = share >= HALF_WAY_SHARE and 2 * history.spent >= history.budget
    return 2 if is_half_way else 1
