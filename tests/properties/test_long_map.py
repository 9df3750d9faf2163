"""The map of a long study: what is kept from one trial to the next, and what is left out, changes no conclusion."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.deadends import chance, kept, turns
from agent.deadends.atlas import Atlas
from agent.deadends.charter import Charter, chart
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.observation import observation_of
from agent.deadends.turns import MOST_ALIKE, Turns, look_of
from agent.outcome import Outcome, OutcomeKind
from agent.propose.history import History
from agent.propose.order import Proposal
from agent.reasons import Reason
from agent.store.trial import Kind, Trial
from runners import Phase, Rung
from search_spaces import Assignment, SearchSpace
from search_spaces.node_generator import generate
from tests.support.modelled_study import ModelledStudy
from tests.support.planted import FACTS, Planted, small_space
from tests.support.strategies import assignments, numbered, spaces

PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
REASONS = (Reason.GPU_OOM, Reason.ASSERTION, Reason.COLLECTIVE_TIMEOUT)
PHASES = (Phase.SPAWN, Phase.LOAD_WEIGHTS, Phase.WARMUP)
Row = tuple[Assignment, Rung, Outcome]


@st.composite
def failures(draw: st.DrawFn, names: list[str]) -> Outcome:
    """A failure of any phase, that may accuse a parameter."""
    blames = tuple(draw(st.lists(st.sampled_from(names), max_size=1)))
    changes = {"blames": blames, "phase": draw(st.sampled_from(PHASES))}
    failure = Planted((), draw(st.sampled_from(REASONS))).failure.model_copy(update=changes)
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


@st.composite
def rows(draw: st.DrawFn) -> tuple[SearchSpace, list[Row]]:
    """What trials of any rung came to, failures of several phases among them."""
    space = draw(spaces())
    names = list(space.parameters)
    rung = st.sampled_from([Rung.PROBE, Rung.FULL, Rung.FULL])
    outcome = st.one_of(st.just(PASSED), failures(names), failures(names))
    return space, draw(st.lists(st.tuples(assignments(space), rung, outcome), min_size=1, max_size=18))


def split(trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Return launches and probes."""
    return [t for t in trials if t.work.kind is not Kind.PROBE], [t for t in trials if t.work.kind is Kind.PROBE]


@pytest.fixture(params=[1, MOST_ALIKE], ids=["few are weighed", "all are weighed"])
def weighed(request: pytest.FixtureRequest) -> Iterator[int]:
    """Weigh so many failures of a look."""
    with mock.patch.object(turns, "MOST_ALIKE", request.param):
        yield request.param


@pytest.mark.usefixtures("weighed")
@settings(max_examples=150)
@given(rows())
def test_lessons_that_are_kept_are_those_that_would_be_learned_anew(drawn: tuple[SearchSpace, list[Row]]) -> None:
    """A trial that bears on no failure of a reason leaves its lesson, alone and beside other dead ends, as it is."""
    space, trials = drawn[0], numbered(drawn[1])
    charter = Charter(space, FACTS)
    for end in range(1, len(trials) + 1):
        launches, probes = split(trials[:end])
        assert charter.chart(launches, probes) == chart(launches, probes, space, FACTS)


@settings(max_examples=300)
@given(rows())
def test_where_chance_is_certain_the_map_is_the_one_that_would_be_drawn_anew(
    drawn: tuple[SearchSpace, list[Row]],
) -> None:
    """Of what is nearly certain only one place is looked at again; here little is enough to be certain."""
    space, trials = drawn[0], numbered(drawn[1])
    charter = Charter(space, FACTS)
    with mock.patch.multiple(chance, MANY=0, MOST_ODDS=0.5):
        for end in range(1, len(trials) + 1):
            launches, probes = split(trials[:end])
            assert charter.chart(launches, probes) == chart(launches, probes, space, FACTS)


@pytest.mark.usefixtures("weighed")
@settings(max_examples=100)
@given(rows())
def test_what_is_kept_of_earlier_weighings_changes_nothing(drawn: tuple[SearchSpace, list[Row]]) -> None:
    """One that forgets nearly all of it at once draws the same map."""

    def maps() -> list[Atlas]:
        charter, trials = Charter(drawn[0], FACTS), numbered(drawn[1])
        return [charter.chart(*split(trials[:end])) for end in range(1, len(trials) + 1)]

    with mock.patch.multiple(kept, MOST_FAILURES=1, MOST_ANSWERS=1, MOST_PASSES=1, MOST_STRIKES=1):
        forgetful = maps()
    assert maps() == forgetful


@pytest.mark.usefixtures("weighed")
@settings(max_examples=100)
@given(rows(), st.integers(0, 2**16))
def test_which_failures_are_weighed_does_not_hang_on_the_order_of_the_trials(
    drawn: tuple[SearchSpace, list[Row]], seed: int
) -> None:
    """Two agents that saw the same in another order believe the same."""
    space, shuffled = drawn[0], list(drawn[1])
    random.Random(seed).shuffle(shuffled)

    def conclusions(found: Atlas) -> set[object]:
        return {(each.conditions, each.reason, each.state) for each in found.dead_ends}

    first, second = (chart(*split(numbered(each)), space, FACTS) for each in (drawn[1], shuffled))
    assert conclusions(first) == conclusions(second)


@st.composite
def failed_alike(draw: st.DrawFn) -> list[Failed]:
    """Failures of one reason and a few looks, in the order in which they are weighed."""
    space = small_space()
    found = draw(st.lists(st.tuples(assignments(space), failures(["draft"])), min_size=1, max_size=40))
    evidence = Evidence(space, FACTS)
    for trial in numbered([(point, Rung.FULL, outcome) for point, outcome in found]):
        seen = observation_of(trial, space)
        assert seen is not None
        evidence.add(seen)
    return max((each.ordered for each in evidence.reasons.values()), key=len)


@given(failed_alike(), st.integers(1, 6), st.integers(1, 4))
def test_so_many_of_a_look_have_their_turn_and_no_more_than_as_many_again(
    failures_of_one: list[Failed], most: int, num_causes: int
) -> None:
    """Where there are more, each of the others has a cause that covers it, or the turns of its look are used up."""
    groups = {each.index: (each.index % num_causes,) for each in failures_of_one}

    def covered(_: Failed, cause: tuple[int, ...]) -> int:
        return sum(1 << index for index, group in groups.items() if group == cause)

    taking = Turns(covered, most)
    weighed = []
    for failed in taking.weighed(failures_of_one):
        weighed.append(failed)
        taking.note(failed, groups[failed.index])
    of_look, turns_of = Counter(map(look_of, failures_of_one)), Counter(map(look_of, weighed))
    assert len({each.index for each in weighed}) == len(weighed)
    for look, number in of_look.items():
        assert min(number, most) <= turns_of[look] <= min(number, 2 * most)
    for failed in (each for each in failures_of_one if each not in weighed):
        assert taking.cause_of(failed) == groups[failed.index] or turns_of[look_of(failed)] == 2 * most


@pytest.mark.parametrize("node", [102, 109])
def test_the_map_of_a_search_is_the_one_that_would_be_drawn_anew(node: int) -> None:
    """With failures that come and go, and what may belong to their causes."""

    def look(history: History, proposal: Proposal) -> None:
        probes = (*history.probes, *history.checks)
        assert history.atlas == chart(history.trials, probes, history.space, history.facts)

    ModelledStudy(node=generate(node), budget=40, slots=2, on_proposal=look).run(steps=40)
