"""What is kept of the values of a growing study is what all of them at once would say."""

from __future__ import annotations

import copy
import statistics

from hypothesis import given
from hypothesis import strategies as st

from agent.propose.values import Values
from agent.spread import launches_of

LAUNCHES = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([1.0, 1.5, 2.0, 7.0])))


@given(LAUNCHES, LAUNCHES)
def test_means_order_and_repeats_are_those_of_all_launches(
    closed: list[tuple[str, float]], more: list[tuple[str, float]]
) -> None:
    """What is added to a copy leaves the first one as it was."""
    first = Values()
    for key, value in closed:
        first.add(key, value)
    second = copy.copy(first)
    for key, value in more:
        second.add(key, value)
    assert_is_of(first, closed)
    assert_is_of(second, [*closed, *more])


def assert_is_of(found: Values, launches: list[tuple[str, float]]) -> None:
    """Compare with a look at all of these launches."""
    keys = dict.fromkeys(key for key, _ in launches)
    values = {key: [value for each, value in launches if each == key] for key in keys}
    means = {key: statistics.fmean(each) for key, each in values.items()}
    assert dict(found) == values
    assert list(found.means.items()) == list(means.items())
    assert found.ranking == sorted(keys, key=means.__getitem__, reverse=True)
    assert sorted(found.of_several) == sorted(launches_of(each) for each in values.values() if len(each) > 1)
    early = list(keys)[:3]
    assert found.best(2, among=3) == set(sorted(early, key=means.__getitem__, reverse=True)[:2])
    assert found.best_of_once == max((each[0] for each in values.values() if len(each) == 1), default=None)
    assert dict(Values(values)) == values and Values(values).ranking == found.ranking
