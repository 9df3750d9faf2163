"""What the rungs cost in launches, and how much of the node's time is left for those below the top."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agent.propose import sums, tallies
from agent.propose.history import History
from runners import Rung

USUAL = {Rung.RESOLVE: 1 / 256, Rung.PROBE: 0.15, Rung.DUMMY: 0.25, Rung.FULL: 1.0}
"""A rung's duration as a share of a launch's, before enough trials tell."""
LOWEST = {Rung.RESOLVE: 1 / 1024, Rung.PROBE: 1 / 64, Rung.DUMMY: 1 / 64, Rung.FULL: 1.0}
"""The least that is believed."""
ENOUGH = {Rung.RESOLVE: 2, Rung.PROBE: 4, Rung.DUMMY: 1, Rung.FULL: 1}
"""Trials after which their median is believed."""
UNBOUNDED = 1000
"""Room where nothing is launched in full: the share of node time is one of launches."""


def price(history: History, rung: Rung) -> float:
    """Return what a rung costs in launches, to the next power of two, so that timing noise changes no proposal."""
    own, launches = tallies.durations(history, rung), sums.launch_times(history)
    if len(own) < ENOUGH[rung] or not launches or min(own[0], launches[0]) <= 0.0:
        return USUAL[rung]
    ratio = _median(own) / _median(launches)
    return min(max(2.0 ** round(math.log2(ratio)), LOWEST[rung]), 1.0)


def _median(ascending: Sequence[float]) -> float:
    """Return the median of numbers that are in order: to sort ten thousand again takes longer than all else here."""
    middle, is_odd = divmod(len(ascending), 2)
    return ascending[middle] if is_odd else (ascending[middle - 1] + ascending[middle]) / 2


def room(history: History, rung: Rung) -> int:
    """Return how many more trials of a rung may run: those below the top together take a bounded share of node time."""
    if Rung.FULL not in history.rungs:
        return UNBOUNDED
    allowed = history.settings.probe_share * history.budget
    others = sum(_number(history, other) * price(history, other) for other in _below(rung))
    return int((allowed - others) / price(history, rung)) - _number(history, rung)


def _below(rung: Rung) -> list[Rung]:
    return [other for other in (Rung.RESOLVE, Rung.PROBE, Rung.DUMMY) if other is not rung]


def _number(history: History, rung: Rung) -> int:
    """Return how many trials of a rung are closed or in flight; a probe that is repeated counts once."""
    if rung is Rung.PROBE:
        return len(history.probed) - tallies.num_not_probed(history)
    return tallies.num_checks(history, rung)
