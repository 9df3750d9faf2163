"""What closed trials say is worked out once, however many launches are proposed until another one is closed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.propose import prepared
from agent.propose.closed import of_closed
from agent.propose.history import History
from agent.propose.improve import Improvement, propose
from agent.propose.memo import Memo
from agent.reasons import Policy, Reason
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Condition
from tests.agent.propose.test_improve import history_before_an_improvement, with_one_in_flight


@pytest.fixture
def history() -> History:
    """A study of a modelled node when the next launch is one that is expected to improve."""
    return replace(history_before_an_improvement(), memo=Memo(), refusals=[], ruled_out=Counter())


def with_what_is_promising_dead(history: History) -> History:
    """Return the study with a dead end in which the next launch lies."""
    work = propose(history)
    assert work is not None
    dead_end = DeadEnd(
        id="D1",
        conditions=tuple(Condition(parameter=name, value=value) for name, value in work.resolved.items()),
        reason=Reason.ASSERTION,
        policy=Policy.DEAD_AT_ONCE,
        state=DeadEndState.CONFIRMED,
        rung=Rung.FULL,
        suspects=tuple(work.resolved),
        observed=work.resolved,
        scope={},
        support=("#1", "#2"),
    )
    atlas = replace(history.atlas, dead_ends=(dead_end, *history.atlas.dead_ends))
    return replace(history, atlas=atlas, refusals=[], ruled_out=Counter())


def with_a_launch(history: History) -> History:
    """Return the study with the next launch in flight."""
    work = propose(history)
    assert work is not None
    return with_one_in_flight(history, work)


def test_a_launch_in_flight_changes_nothing_of_it(history: History) -> None:
    """The rows of the models are the very same."""
    assert Improvement(with_a_launch(history))._rows is Improvement(history)._rows


def test_a_closed_one_does(history: History) -> None:
    """It is made anew then, and once."""
    first = of_closed(history, "test", object)
    assert of_closed(history, "test", object) is first
    earlier = replace(history, trials=history.trials[:-1])
    assert of_closed(earlier, "test", object) is not first


def test_what_was_refused_is_not_asked_about_again(history: History) -> None:
    """The next proposal counts the same refusals, and the space is asked about what is new only."""
    dead = with_what_is_promising_dead(history)
    propose(dead)
    refused = list(dead.refusals)
    assert refused, "nothing was refused: the study tells nothing"
    again = replace(dead, refusals=[], ruled_out=Counter())
    with mock.patch.object(History, "admit", autospec=True, side_effect=History.admit) as admit:
        propose(again)
    assert (again.refusals, again.ruled_out) == (refused, dead.ruled_out)
    assert admit.call_count == 1, "only what is launched is asked about"


def test_what_a_space_says_of_a_candidate_is_worked_out_once(history: History) -> None:
    """Nor is it asked what the engine would make of it."""
    propose(history)
    with mock.patch.object(prepared, "_prepared", side_effect=AssertionError("asked again")):
        work = propose(replace(history))
    assert isinstance(work, Work) and (work.kind, work.rung) == (Kind.SEARCH, Rung.FULL)
