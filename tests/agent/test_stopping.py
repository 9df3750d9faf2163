"""The rule under which a launch may end early: what it needs to know, how wide its margin is, whom it spares."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.spread import Spread, asserted, pooled, spread_of
from agent.stopping import bar, margin, stop_rule, study_spread
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment
from search_spaces.node_loader import node_of
from tests.support.modelled_study import ModelledStudy
from tests.support.small_node import small_data

NODE = node_of(small_data())
KNOWN = Spread(variance=0.05**2, freedom=8)


def study(known: Spread | None = KNOWN, *, stops_early: bool = True) -> ModelledStudy:
    """Return a study whose default is measured, once."""
    made = ModelledStudy(node=NODE, budget=20, known_spread=known, stops_early=stops_early)
    made.launch(work(Kind.DEFAULT))
    return made


def work(kind: Kind = Kind.SEARCH, repeat: int = 0, **changes: object) -> Work:
    point: Assignment = {**NODE.default, **changes}  # type: ignore[dict-item]
    return Work(kind=kind, rung=Rung.FULL, requested=point, resolved=point, repeat=repeat)


def test_a_candidate_is_launched_under_a_rule_once_the_spread_is_known() -> None:
    """Three standard deviations or more below the incumbent, and generous to what is not measured yet."""
    history = study().history()
    rule = stop_rule(history, work(backend="b"))
    (value,) = history.values[history.ranking[0]]
    assert rule is not None
    assert rule.below == pytest.approx(value * math.exp(-margin(KNOWN, 1)))
    assert rule.below < value * math.exp(-3 * 0.05 * math.sqrt(2))
    levels = history.trials[0].record.measurement.levels  # type: ignore[union-attr]
    assert rule.hopes == {level.concurrency: pytest.approx(1.25 * level.output_tok_per_s) for level in levels}


@pytest.mark.parametrize("kind", [Kind.DEFAULT, Kind.BASELINE, Kind.REPEAT, Kind.CONFIRM])
def test_what_others_are_compared_with_is_measured_whole(kind: Kind) -> None:
    assert stop_rule(study().history(), work(kind)) is None


def test_what_the_user_asked_for_is_measured_whole() -> None:
    asked = study()
    asked.asked = (work(backend="b").requested,)
    assert stop_rule(asked.history(), work(backend="b")) is None


def test_nothing_is_stopped_where_the_user_does_not_want_it() -> None:
    assert stop_rule(study(stops_early=False).history(), work(backend="b")) is None


def test_nothing_is_stopped_before_three_repeats_say_how_far_launches_differ() -> None:
    """Of one assignment or of several, and from then on without any earlier study."""
    found = study(known=None)
    for repeat in range(3):
        assert stop_rule(found.history(), work(backend="b")) is None
        found.launch(work(Kind.REPEAT, repeat=repeat + 1))
    assert study_spread(found.history()).freedom == 3
    assert stop_rule(found.history(), work(backend="b")) is not None


def test_the_bar_hangs_on_the_best_assignment_and_its_number_of_launches() -> None:
    """A mean of more launches is surer, so its margin is smaller."""
    found = study()
    once = bar(found.history(), KNOWN)
    for repeat in range(3):
        found.launch(work(Kind.REPEAT, repeat=repeat + 1))
    often = bar(found.history(), KNOWN)
    assert often.margin == pytest.approx(once.margin * math.sqrt(1.5 / 3))


@given(st.floats(0.005, 0.3), st.integers(3, 40), st.integers(1, 10))
def test_a_margin_is_at_least_three_standard_deviations_of_the_difference(sd: float, freedom: int, n: int) -> None:
    """And the fewer repeats there were, the wider it is."""
    found = margin(Spread(variance=sd**2, freedom=freedom), n)
    assert found >= 3 * sd * math.sqrt(1 + 1 / n) * (1 - 1e-9)
    assert found >= margin(Spread(variance=sd**2, freedom=freedom + 1), n) * (1 - 1e-9)


@given(st.lists(st.lists(st.floats(1.0, 1e5), min_size=1, max_size=4), max_size=6))
def test_a_spread_is_the_pooled_variance_of_the_logarithms(groups: list[list[float]]) -> None:
    found = spread_of(groups)
    logs = [[math.log(value) for value in group] for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in logs)
    squares = sum(statistics.variance(group) * (len(group) - 1) for group in logs)
    assert found.freedom == freedom
    assert found.variance == pytest.approx(squares / freedom if freedom else 0.0, abs=1e-9)


def test_spreads_are_pooled_by_their_repeats() -> None:
    one, other = Spread(variance=0.01, freedom=2, origin="a"), Spread(variance=0.04, freedom=6, origin="b")
    both = pooled([one, other, Spread(variance=9.0, freedom=0)])
    assert (both.variance, both.freedom, both.origin) == (pytest.approx(0.0325), 8, "a, b")
    assert asserted(0.07).sd == pytest.approx(0.07)


@pytest.mark.parametrize("noise", [0.05, 0.10, 0.20])
@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_a_launch_as_good_as_the_best_is_stopped_in_at_most_one_of_fifty_cases(noise: float, repeats: int) -> None:
    """With the spread estimated from so few repeats, and the incumbent the luckiest of five equals, launched once."""
    source, false_stops, rounds = random.Random(f"{noise}/{repeats}"), 0, 3000
    for _ in range(rounds):
        calibration = [math.exp(source.gauss(0.0, noise)) for _ in range(repeats + 1)]
        lucky = max(source.gauss(0.0, noise) for _ in range(5))
        false_stops += source.gauss(-0.02, noise) < lucky - margin(spread_of([calibration]), 1)
    assert false_stops / rounds <= 0.02
