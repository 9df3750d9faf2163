"""What stays is set aside from the garbage collector, and nothing that dies in a cycle stays for good."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from agent.long_lived import EACH, YOUNG, LongLived, set_aside
from search_spaces import load_node
from tests.support.modelled_study import ModelledStudy


class Knot:
    """Something that only a garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def long_lived() -> Iterator[LongLived]:
    """Set aside what is younger than the test, and give it back."""
    gc.collect()
    with set_aside() as found:
        yield found
    assert gc.get_freeze_count() == 0


def test_what_is_young_is_looked_at_seldom_while_a_study_runs_and_as_ever_afterwards() -> None:
    """The rest of the program is not ours."""
    usual = gc.get_threshold()
    with set_aside():
        assert gc.get_threshold() == (YOUNG, *usual[1:])
    assert gc.get_threshold() == usual


def test_a_small_study_is_left_to_the_collector(long_lived: LongLived) -> None:
    """Nothing is set aside before there is something to it."""
    long_lived.grown(EACH - 1)
    assert gc.get_freeze_count() == 0


def test_what_stays_is_no_longer_looked_at(long_lived: LongLived) -> None:
    """A full collection does not come across what was set aside."""
    stays = [[number] for number in range(1000)]
    long_lived.grown(EACH)
    assert gc.get_freeze_count() >= len(stays)
    assert not any(each is stays for each in gc.get_objects())


def test_a_long_study_is_set_aside_when_an_agent_resumes_it(long_lived: LongLived) -> None:
    """The first trial that it closes is enough."""
    long_lived.grown(40 * EACH)
    assert gc.get_freeze_count() > 0


def test_what_died_since_is_freed_at_the_next_moment(long_lived: LongLived) -> None:
    """Whatever was made and dropped between two moments goes with the second."""
    long_lived.grown(10 * EACH)
    dropped = weakref.ref(Knot())
    long_lived.grown(11 * EACH)
    assert dropped() is None


def test_what_was_set_aside_and_died_in_a_cycle_is_freed_once_the_study_has_doubled(long_lived: LongLived) -> None:
    """Until then it stays: nobody looks at it."""
    alive = Knot()
    dropped = weakref.ref(alive)
    long_lived.grown(10 * EACH)
    del alive
    long_lived.grown(19 * EACH)
    assert dropped() is not None
    long_lived.grown(20 * EACH)
    assert dropped() is None


def test_a_history_that_was_replaced_is_freed_at_once() -> None:
    """Each of them has lists of all trials: in a cycle, they would stay until the collector looks at them.

    A few are kept on purpose, by what was made of them and still holds.
    """
    study, seen = ModelledStudy(node=load_node("generated-small-1"), budget=16, slots=2), []
    study.on_proposal = lambda history, _: seen.append(weakref.ref(history))
    gc.collect()
    gc.disable()
    try:
        study.run()
        alive = sum(history() is not None for history in seen)
    finally:
        gc.enable()
    assert len(seen) > 60 and alive < 12
