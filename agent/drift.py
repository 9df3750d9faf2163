"""Whether the node itself grew slower or faster while the study ran, by the launches of the baseline. Pure.

A hot node, or one whose clocks were set down, makes what was launched late look bad. The baseline is launched again now
and then, and always means the same; a straight line through the logarithms of its values over time tells the drift.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.verdict import LEVEL
from runners.student import t_quantile

FEWEST = 3
"""Launches below which a line always fits."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of the baseline over the study's time."""

    share: float
    """Over the whole time, as a share: −0.05 is 5 % slower at the end."""
    low: float
    high: float
    """Ends of its interval."""
    hours: float
    """From the first launch of the baseline to the last."""
    num_launches: int

    @property
    def is_seen(self) -> bool:
        """True when the interval excludes that nothing changed."""
        return self.low > 0.0 or self.high < 0.0

    def words(self) -> str:
        """Return what was seen, in a sentence."""
        over = f"over {_duration(self.hours)} ({self.num_launches} launches of the baseline, {LEVEL:.0%} interval"
        interval = f"{self.low:+.1%} to {self.high:+.1%})"
        if not self.is_seen:
            return f"no drift seen: the baseline changed by {self.share:+.1%} {over} {interval}"
        return f"the node drifted: the baseline changed by {self.share:+.1%} {over} {interval}"


def drift_of(launches: Sequence[tuple[datetime, float]]) -> Drift | None:
    """Return the drift by the baseline's launches (when each began, its value), or None where there are too few."""
    began = min((moment for moment, _ in launches), default=None)
    if began is None or len(launches) < FEWEST:
        return None
    hours = [(moment - began).total_seconds() / 3600 for moment, _ in launches]
    logs = [math.log(value) for _, value in launches]
    middle, mean = statistics.fmean(hours), statistics.fmean(logs)
    squares = sum((hour - middle) ** 2 for hour in hours)
    if squares <= 0.0:
        return None
    slope = sum((hour - middle) * log for hour, log in zip(hours, logs, strict=True)) / squares
    residues = [log - mean - slope * (hour - middle) for hour, log in zip(hours, logs, strict=True)]
    freedom = len(launches) - 2
    error = math.sqrt(sum(residue**2 for residue in residues) / freedom / squares)
    reach, span = t_quantile(0.5 + LEVEL / 2, freedom) * error, max(hours)
    low, share, high = (math.expm1(min(each * span, 700.0)) for each in (slope - reach, slope, slope + reach))
    return Drift(share, low, high, span, len(launches))


def _duration(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
