"""Sums that are kept from one proposal to the next are what a fresh look at all trials comes to."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent.propose.memo import Memo
from agent.reasons import Reason
from agent.store.trial import Trial
from runners import Rung
from tests.support.lives import PASSED, failed
from tests.support.planted import small_space
from tests.support.simulated_study import START
from tests.support.strategies import numbered

SPACE = small_space()


def closed_trials(number: int, seed: int) -> list[Trial]:
    """Return closed launches of random assignments, repeats among them."""
    generator = random.Random(seed)
    outcomes = [PASSED, failed(Reason.ASSERTION)]
    points = [{name: generator.choice(each.domain) for name, each in SPACE.parameters.items()} for _ in range(number)]
    return numbered([(point, Rung.FULL, generator.choice(outcomes)) for point in points])


def opened(trial: Trial) -> Trial:
    """Return a trial as it was while it ran."""
    return trial.model_copy(update={"closed_at": None, "outcome": None, "record": None})


def add(found: dict[str, tuple[int, ...]], trial: Trial) -> None:
    """Note which trials had an assignment, those that run marked by a minus."""
    sign = 1 if trial.is_closed else -1
    found[trial.work.key] = (*found.get(trial.work.key, ()), sign * trial.number)


def moments(number: int, slots: int, seed: int) -> Iterator[tuple[Trial, ...]]:
    """Yield the launches of a study each time that one began or ended, in a random order."""
    ended, generator = closed_trials(number, seed), random.Random(seed)
    now: list[Trial] = []
    running: list[int] = []
    while len(now) < number or running:
        if len(now) < number and len(running) < slots:
            running.append(len(now))
            now.append(opened(ended[len(now)]))
        else:
            index = running.pop(generator.randrange(len(running)))
            now[index] = ended[index]
        yield tuple(now)


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 1000))
def test_in_whatever_order_trials_end_the_sum_is_that_over_all_of_them(number: int, slots: int, seed: int) -> None:
    memo = Memo()
    for now in moments(number, slots, seed):
        found = memo.fold("keys", now, dict, add)
        assert list(found.items()) == list(Memo().fold("keys", now, dict, add).items())


def add_closed(found: dict[str, tuple[int, ...]], trial: Trial) -> None:
    """Note which closed trials had an assignment."""
    if trial.is_closed:
        add(found, trial)


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 1000))
def test_a_sum_of_closed_trials_alone_is_the_same_and_what_was_returned_stays_as_it_was(
    number: int, slots: int, seed: int
) -> None:
    """It is not copied while nothing is closed, and whoever has it keeps it."""
    memo = Memo()
    returned: list[tuple[dict[str, tuple[int, ...]], list[tuple[str, tuple[int, ...]]]]] = []
    for now in moments(number, slots, seed):
        found = memo.fold("keys", now, dict, add_closed, closed_only=True)
        assert list(found.items()) == list(Memo().fold("keys", now, dict, add_closed).items())
        returned.append((found, list(found.items())))
    assert all(list(found.items()) == before for found, before in returned)


def test_nothing_is_copied_while_nothing_is_closed() -> None:
    trials, memo = closed_trials(6, 3), Memo()
    before = memo.fold("keys", trials, dict, add_closed, closed_only=True)
    running = [*trials, opened(closed_trials(7, 3)[6])]
    assert memo.fold("keys", running, dict, add_closed, closed_only=True) is before


def test_what_is_returned_is_not_changed_by_what_comes_later() -> None:
    """A history keeps its sums while the next one goes on from them."""
    trials, memo = closed_trials(6, 1), Memo()
    before = memo.fold("keys", trials[:3], dict, add)
    kept = dict(before)
    memo.fold("keys", trials, dict, add)
    assert before == kept


def test_another_list_is_summed_up_anew() -> None:
    """A changed environment begins a new epoch, and a corrected verdict replaces a trial."""
    trials, memo = closed_trials(5, 2), Memo()
    memo.fold("keys", trials, dict, add)
    later = [trial.model_copy(update={"started_at": START + timedelta(days=1)}) for trial in trials]
    assert memo.fold("keys", trials[2:], dict, add) == Memo().fold("keys", trials[2:], dict, add)
    assert memo.fold("keys", later, dict, add) == Memo().fold("keys", later, dict, add)
