"""Drift is told by the launches of the baseline, with an interval, and never claimed for noise."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from agent.drift import drift_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def launches(share: float, noise: float, number: int, seed: int = 0) -> list[tuple[datetime, float]]:
    """Return launches of a baseline over ten hours in which the node changed by this share."""
    rng = random.Random(seed)
    at = [index / (number - 1) for index in range(number)]
    return [
        (START + timedelta(hours=10 * each), 100 * math.exp(math.log1p(share) * each + rng.gauss(0.0, noise)))
        for each in at
    ]


def test_a_node_that_grows_slower_is_seen() -> None:
    """With how much, over which time."""
    found = drift_of(launches(-0.2, 0.005, 6))
    assert found is not None and found.is_seen
    assert found.share == pytest.approx(-0.2, abs=0.02) and found.hours == pytest.approx(10.0)
    assert found.low < found.share < found.high < 0
    assert found.words().startswith("the node drifted: the baseline changed by -")
    assert "over 10.0 h (6 launches of the baseline, 95% interval" in found.words()


def test_noise_is_taken_for_drift_as_rarely_as_the_interval_says() -> None:
    """One time in twenty."""
    seen = [drift_of(launches(0.0, 0.1, 4, seed)) for seed in range(600)]
    share = sum(found is not None and found.is_seen for found in seen) / len(seen)
    assert 0.02 < share < 0.08


def test_what_is_not_seen_is_not_claimed() -> None:
    """In words as well."""
    found = drift_of(launches(0.0, 0.1, 4, 3))
    assert found is not None and not found.is_seen
    assert found.words().startswith("no drift seen")


def test_two_launches_or_no_time_tell_nothing() -> None:
    """A line always fits two points, and none fits a single moment."""
    assert drift_of([]) is None
    assert drift_of(launches(-0.5, 0.01, 2)) is None
    assert drift_of([(START, 1.0), (START, 2.0), (START, 3.0)]) is None
