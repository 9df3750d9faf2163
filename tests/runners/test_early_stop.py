"""A load that watches its own requests: sure of what it says, and never sure too soon."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import StopRule
from runners.early_stop import EarlyStop, rate_of

TOKENS = 128


def seconds_at(rate: float, concurrency: int) -> float:
    """Return how long a request takes where a level serves so many tokens a second."""
    return concurrency * TOKENS / rate


def served(watch: EarlyStop, concurrency: int, seconds: list[float]) -> int | None:
    """Return after how many requests the watch ended the load, or None."""
    return next((n for n, each in enumerate(seconds, 1) if watch.served(concurrency, TOKENS, each)), None)


def series(rate: float, concurrency: int, sd: float, number: int, seed: int) -> list[float]:
    """Return requests that scatter around a rate."""
    source = random.Random(seed)
    return [seconds_at(rate, concurrency) * source.lognormvariate(0.0, sd) for _ in range(number)]


def test_a_rate_is_the_tokens_over_the_time_in_flight() -> None:
    """Four requests of two seconds, two at a time: 128 tokens in each second."""
    rate = rate_of(2, [(TOKENS, 2.0)] * 4)
    assert (rate.estimate, rate.ceiling) == pytest.approx((TOKENS, TOKENS))


def test_scatter_raises_the_ceiling_and_more_requests_lower_it() -> None:
    few, many = ([(TOKENS, 1.0), (TOKENS, 1.2)] * n for n in (2, 20))
    assert rate_of(1, few).estimate == pytest.approx(rate_of(1, many).estimate)
    assert rate_of(1, few).ceiling > rate_of(1, many).ceiling > rate_of(1, many).estimate


def test_nothing_is_concluded_from_the_first_round() -> None:
    """However slow it is: two requests beyond it are needed."""
    watch = EarlyStop(StopRule(below=100.0, hopes={8: 100.0}), {8: 32})
    assert served(watch, 8, [seconds_at(1.0, 8)] * 32) == 8 + 2


def test_a_slow_first_round_alone_stops_nothing() -> None:
    """Caches fill and kernels are compiled in it; what comes after it is as fast as the incumbent."""
    watch = EarlyStop(StopRule(below=90.0, hopes={4: 100.0}), {4: 40})
    assert served(watch, 4, [seconds_at(20.0, 4)] * 4 + series(100.0, 4, 0.05, 36, seed=1)) is None


def test_a_level_that_is_not_measured_yet_may_make_good() -> None:
    """Half as fast at one level is no reason to stop as long as the other one may be four times as fast."""
    rule = StopRule(below=100.0, hopes={8: 100.0, 1: 400.0})
    hopeful = EarlyStop(rule, {8: 32, 1: 8})
    assert served(hopeful, 8, [seconds_at(50.0, 8)] * 32) is None
    assert served(hopeful, 1, [seconds_at(100.0, 1)] * 8) == 1 + 2
    assert hopeful.stopped is not None
    assert hopeful.stopped.ceiling == pytest.approx((50.0 * 100.0) ** 0.5)
    hopeless = EarlyStop(rule.model_copy(update={"hopes": {8: 100.0, 1: 150.0}}), {8: 32, 1: 8})
    assert served(hopeless, 8, [seconds_at(50.0, 8)] * 32) == 8 + 2


def test_the_estimate_takes_an_unmeasured_level_to_be_as_much_slower() -> None:
    watch = EarlyStop(StopRule(below=100.0, hopes={8: 100.0, 1: 40.0}), {8: 32, 1: 8})
    served(watch, 8, [seconds_at(50.0, 8)] * 32)
    assert watch.stopped is not None
    assert watch.stopped.estimate == pytest.approx((50.0 * 20.0) ** 0.5)
    # 22 requests of 20.48 s, eight at a time and seven of them half done, and eight of 128 tokens at 20 tok/s.
    assert watch.stopped.saved_s == pytest.approx((22 - 3.5) * 20.48 / 8 + 8 * TOKENS / 20)


def test_a_level_that_the_objective_does_not_speak_of_decides_nothing() -> None:
    watch = EarlyStop(StopRule(below=100.0, hopes={1: 100.0}), {1: 8, 8: 32})
    assert served(watch, 8, [seconds_at(1.0, 8)] * 32) is None


def test_a_load_that_is_over_is_not_stopped() -> None:
    """There is nothing to save, so what was measured whole counts whole."""
    watch = EarlyStop(StopRule(below=100.0, hopes={1: 100.0}), {1: 3})
    assert served(watch, 1, [seconds_at(1.0, 1)] * 3) is None


@given(st.integers(1, 16), st.floats(0.01, 0.3), st.floats(1.0, 1e4), st.integers(0, 2**32), st.floats(0.3, 3.0))
def test_what_it_says_holds_together(concurrency: int, sd: float, below: float, seed: int, relative: float) -> None:
    """Whatever the series: the ceiling lies below the bar, the estimate not above it, and something is saved."""
    number = 4 * concurrency + 4
    watch = EarlyStop(StopRule(below=below, hopes={concurrency: below}), {concurrency: number})
    ended = served(watch, concurrency, series(relative * below, concurrency, sd, number, seed))
    assert (ended is None) == (watch.stopped is None)
    if watch.stopped is not None:
        assert watch.stopped.requests == ended
        assert 0 < watch.stopped.estimate <= watch.stopped.ceiling < below
        assert watch.stopped.saved_s > 0


def test_launches_above_the_bar_are_rarely_stopped_whatever_their_requests_do() -> None:
    """Looked at after every request, so the chances add up: at most one in fifty of those just above the bar."""
    stopped = 0
    for seed in range(400):
        watch = EarlyStop(StopRule(below=100.0, hopes={4: 100.0}), {4: 40})
        stopped += served(watch, 4, series(103.0, 4, 0.1, 40, seed)) is not None
    assert stopped <= 8
