"""The statistics behind the verdict: they hold what they promise, by simulation with fixed seeds."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from agent.spread import Spread, spread_of
from agent.verdict import (
    EARLY_LEVEL,
    Comparison,
    Verdict,
    comparisons,
    critical_value,
    interval_of_mean,
)

TIMES = 1500
FOUR_SDS = 4 * math.sqrt(0.05 * 0.95 / TIMES)
"""How far a share of 5 % may be off by chance in so many simulations: one in thirty thousand is further."""
VALUES = st.lists(st.floats(min_value=1.0, max_value=1000.0), min_size=1, max_size=6)
Draw = Callable[[random.Random], float]


def normal(rng: random.Random) -> float:
    """Return noise as most engines show it."""
    return rng.gauss(0.0, 1.0)


def heavy(rng: random.Random) -> float:
    """Return noise with outliers: Student's t with 4 degrees of freedom, of unit variance."""
    return rng.gauss(0.0, 1.0) / math.sqrt(rng.gammavariate(2.0, 2.0) / 4.0) / math.sqrt(2.0)


def skewed(rng: random.Random) -> float:
    """Return noise that is mostly a little fast and sometimes very slow, of unit variance."""
    return 1.0 - rng.expovariate(1.0)


def launches(rng: random.Random, ratio: float, number: int, sd: float, draw: Draw = normal) -> list[float]:
    """Return the values of so many launches of something worth `ratio` times the baseline's 100."""
    return [100.0 * ratio * math.exp(sd * draw(rng)) for _ in range(number)]


def shares(ratios: tuple[float, ...], numbers: tuple[int, ...], sd: float, draw: Draw = normal) -> tuple[float, float]:
    """Return how often the winner's interval misses the truth, and how often it claims a gain that is none.

    The winner is the one with the best mean, which is what makes it a lucky one.
    """
    rng, missed, false = random.Random(7), 0, 0
    for _ in range(TIMES):
        baseline = launches(rng, 1.0, 4, sd, draw)
        repeats = {str(i): launches(rng, ratio, numbers[i], sd, draw) for i, ratio in enumerate(ratios)}
        winner = max(repeats, key=lambda key: statistics.fmean(map(math.log, repeats[key])))
        found, truth = comparisons(baseline, repeats)[winner], ratios[int(winner)]
        missed += not found.low <= truth <= found.high
        false += found.verdict is Verdict.GAIN and truth <= 1.0
    return missed / TIMES, false / TIMES


@pytest.mark.parametrize("sd", [0.05, 0.2])
@pytest.mark.parametrize(("ratios", "numbers"), [((1.1,), (3,)), ((1.0, 1.0, 1.0), (3, 2, 1)), ((1.3, 1.0), (2, 2))])
def test_the_winners_interval_holds_the_truth_as_often_as_it_says(
    ratios: tuple[float, ...], numbers: tuple[int, ...], sd: float
) -> None:
    """Also where the winner is the best of several that are all worth the same."""
    missed, false = shares(ratios, numbers, sd)
    assert missed <= 0.05 + FOUR_SDS
    assert false <= 0.025 + FOUR_SDS


@pytest.mark.parametrize("draw", [heavy, skewed])
def test_a_gain_is_rarely_claimed_where_there_is_none_whatever_the_noise_looks_like(draw: Draw) -> None:
    """Outliers and slow launches are not normal; the interval is then a little too narrow, and no more."""
    missed, false = shares((1.0, 1.0, 1.0), (3, 2, 2), 0.1, draw)
    assert missed <= 0.08
    assert false <= 0.05


def test_the_interval_of_single_launches_would_be_far_too_narrow() -> None:
    """Why the spread is pooled and studentised: two launches each, resampled, hold the truth in half of the cases."""
    rng, held = random.Random(3), 0
    for _ in range(300):
        baseline, repeats = launches(rng, 1.0, 2, 0.1), launches(rng, 1.0, 2, 0.1)
        resampled = sorted(
            statistics.fmean(rng.choices(repeats, k=2)) / statistics.fmean(rng.choices(baseline, k=2))
            for _ in range(200)
        )
        held += resampled[5] <= 1.0 <= resampled[194]
    assert held / 300 < 0.75


def test_stopping_early_does_not_spoil_the_interval() -> None:
    """The rule of the contenders: stop at the strict level, else look once more at the usual one when all is spent."""
    rng, false = random.Random(11), 0
    for _ in range(TIMES):
        baseline, repeats = launches(rng, 1.0, 2, 0.1), launches(rng, 1.0, 2, 0.1)
        while len(baseline) < 5 and not _says_gain(baseline, repeats, EARLY_LEVEL):
            baseline, repeats = baseline + launches(rng, 1.0, 1, 0.1), repeats + launches(rng, 1.0, 1, 0.1)
        false += _says_gain(baseline, repeats, 0.95)
    assert false / TIMES <= 0.05


def _says_gain(baseline: list[float], repeats: list[float], level: float) -> bool:
    return comparisons(baseline, {"a": repeats}, level=level)["a"].verdict is Verdict.GAIN


def test_an_interval_of_one_mean_holds_it() -> None:
    """With the spread from elsewhere."""
    rng, missed = random.Random(5), 0
    for _ in range(TIMES):
        groups = [launches(rng, 1.0 + index, 2, 0.1) for index in range(4)]
        low, high = interval_of_mean(groups[0], spread_of(groups))
        missed += not low <= 100.0 <= high
    assert abs(missed / TIMES - 0.05) <= FOUR_SDS


@pytest.mark.parametrize("off", [0.8, 1.0])
def test_noise_learned_from_other_launches_makes_the_interval_narrower_and_no_less_true(off: float) -> None:
    """Also where what was learned is too little by a fifth, which modelled studies hardly ever do."""
    rng, missed, false, widths = random.Random(13), 0, 0, [0.0, 0.0]
    for _ in range(TIMES):
        baseline, repeats = launches(rng, 1.0, 3, 0.1), {each: launches(rng, 1.0, 2, 0.1) for each in "abc"}
        learned = Spread(variance=(0.1 * off * math.exp(0.2 * rng.gauss(0.0, 1.0))) ** 2, freedom=4)
        alone, both = (comparisons(baseline, repeats, learned=each)["a"] for each in (None, learned))
        missed += not both.low <= 1.0 <= both.high
        false += both.verdict is Verdict.GAIN
        widths[0] += math.log(alone.high / alone.low)
        widths[1] += math.log(both.high / both.low)
    assert missed / TIMES <= 0.05
    assert false / TIMES <= 0.025
    assert widths[1] < widths[0]


def test_what_was_learned_elsewhere_never_stands_for_repeats() -> None:
    """Where nothing was repeated, nothing is claimed."""
    learned = Spread(variance=0.0001, freedom=4)
    assert comparisons([100.0], {"a": [200.0]}, learned=learned) == {}


@given(baseline=VALUES, repeats=st.lists(VALUES, min_size=1, max_size=4), factor=st.floats(0.1, 10.0))
def test_only_ratios_matter(baseline: list[float], repeats: list[list[float]], factor: float) -> None:
    """Other units give the same comparison, and what is twice as fast has twice the ratio and the same doubt."""
    named = {str(index): values for index, values in enumerate(repeats)}
    found = comparisons(baseline, named)
    scaled = comparisons(
        [factor * value for value in baseline],
        {key: [factor * value for value in values] for key, values in named.items()},
    )
    assert found.keys() == scaled.keys()
    for key, each in found.items():
        assert each.low <= each.ratio <= each.high
        for name in ("ratio", "low", "high"):
            assert getattr(scaled[key], name) == pytest.approx(getattr(each, name), rel=1e-6, abs=1e-12)


@given(st.integers(1, 8), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 12))
def test_more_doubt_reaches_further(num_baseline: int, numbers: list[int], freedom: int) -> None:
    """More assignments, fewer launches behind the spread, or a stricter level never give a narrower interval."""
    these = tuple(sorted(numbers))
    critical = critical_value(num_baseline, these, freedom, 0.95)
    assert critical_value(num_baseline, these, freedom, 0.99) >= critical
    assert critical_value(num_baseline, these, freedom + 3, 0.95) <= critical * 1.001
    assert critical_value(num_baseline, tuple(sorted((*these, 2))), freedom, 0.95) >= critical * 0.999


def test_critical_values_are_those_of_the_tables() -> None:
    """One comparison is Student's t, three with ten launches each are Dunnett's."""
    assert critical_value(3, (3,), 4, 0.95) == pytest.approx(2.7764, rel=1e-3)
    assert critical_value(1, (1,), 1, 0.99) == pytest.approx(63.657, rel=1e-3)
    assert critical_value(10, (10, 10, 10), 36, 0.95) == pytest.approx(2.45, rel=2e-3)


@given(st.integers(1, 60), st.integers(1, 300), st.floats(1.0, 2000.0), st.sampled_from([0.95, 0.99]))
def test_the_critical_value_of_one_comparison_is_students(
    num_baseline: int, number: int, freedom: float, level: float
) -> None:
    """However many launches either has: a single one beside hundreds decides sharply whether the interval holds."""
    exact = float(stdtrit(freedom, 0.5 + level / 2))
    assert critical_value(num_baseline, (number,), freedom, level) == pytest.approx(exact, rel=1e-4)


def test_without_a_repeat_nothing_is_claimed() -> None:
    """The spread is unknown, so that no interval is."""
    assert comparisons([100.0], {"a": [200.0]}) == {}
    assert comparisons([], {"a": [200.0, 201.0]}) == {}
    assert comparisons([100.0, 101.0], {"a": []}) == {}
    unknown = spread_of([[1.0], [2.0]])
    assert interval_of_mean([5.0], unknown) == (0.0, math.inf)
    with pytest.raises(ValueError, match="needs a value"):
        interval_of_mean([], Spread(variance=0.01, freedom=3))


def comparison(low: float, high: float) -> Comparison:
    """Return a comparison with this interval."""
    return Comparison(math.sqrt(low * high), low, high, 0.95, 1, 3, 2, Spread(variance=0.0016, freedom=5))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.01, 1.2, Verdict.GAIN),
        (0.9, 1.01, Verdict.NO_GAIN),
        (0.5, 0.8, Verdict.NO_GAIN),
        (0.9, 1.1, Verdict.NOT_SEPARABLE),
        (1.0, 1.5, Verdict.NOT_SEPARABLE),
    ],
)
def test_the_verdict_is_where_the_interval_lies(low: float, high: float, verdict: Verdict) -> None:
    """Above 1 a gain; not worth a change none; else open."""
    assert comparison(low, high).verdict is verdict


def test_words_say_what_the_interval_rests_on() -> None:
    """A reader can tell a verdict on one repeat from one on five."""
    assert comparison(0.9, 1.1).words() == (
        "0.90× to 1.10× (95% interval; 1 repeat against 3 launches of the baseline, the best of 2 repeated; launches "
        "spread by 4.0%)"
    )
