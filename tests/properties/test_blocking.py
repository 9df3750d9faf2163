"""What many dead ends forbid together is what one after the other forbids, and nothing is drawn inside of them."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.deadends.atlas import Atlas
from agent.deadends.blocking import Blocking
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.propose.random_points import random_points
from agent.reasons import REASONS, Reason
from runners import Rung
from search_spaces import SearchSpace
from search_spaces.condition import Comparison, Condition
from tests.support.planted import Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import assignments, spaces

BARRIERS = (DeadEndState.CONFIRMED, DeadEndState.SUSPECTED)
DRAWS = 24
"""For each point of a space. Every point that may be drawn is drawn at least as often as by lot from all of them."""


@st.composite
def dead_ends(draw: st.DrawFn, space: SearchSpace, states: list[DeadEndState], number: int) -> DeadEnd:
    """One entry of some state over one or two parameters, known for some values of the others only."""
    names = draw(st.lists(st.sampled_from(list(space.parameters)), min_size=1, max_size=2, unique=True))
    conditions = tuple(
        Condition(
            parameter=name,
            comparison=draw(st.sampled_from(list(Comparison))) if space.parameters[name].monotone else Comparison.EQUAL,
            value=draw(st.sampled_from(space.parameters[name].domain)),
        )
        for name in names
    )
    others = {name: each.domain for name, each in space.parameters.items() if name not in names}
    within = draw(st.dictionaries(st.sampled_from(sorted(others)), st.integers(1, 4), max_size=1)) if others else {}
    return DeadEnd(
        id=f"D{number}",
        conditions=conditions,
        reason=Reason.ASSERTION,
        policy=REASONS[Reason.ASSERTION].policy,
        state=draw(st.sampled_from(states)),
        rung=Rung.FULL,
        suspects=tuple(draw(st.lists(st.sampled_from(list(space.parameters)), unique=True))),
        observed=draw(assignments(space)),
        scope={},
        support=("#0",),
        within={name: others[name][:size] for name, size in within.items()},
    )


@given(st.data())
def test_the_first_one_that_forbids_an_assignment_is_found(data: st.DataObject) -> None:
    """Whatever their states, and wherever they are known to hold."""
    space = data.draw(spaces())
    found = [data.draw(dead_ends(space, list(DeadEndState), number)) for number in range(data.draw(st.integers(0, 6)))]
    blocking = Blocking(barriers := [each for each in found if each.state in BARRIERS])
    for point in data.draw(st.lists(assignments(space), min_size=1, max_size=8)):
        first = next((place for place, each in enumerate(barriers) if each.blocks(point)), None)
        assert blocking.place(point) == first
        assert not any(each.blocks(point) for each in found if each.state not in BARRIERS)


@given(st.data())
def test_points_are_drawn_outside_of_what_is_confirmed_and_from_everywhere_else(data: st.DataObject) -> None:
    """Each of them comes up."""
    space = data.draw(spaces())
    confirmed = [DeadEndState.CONFIRMED]
    dead = [data.draw(dead_ends(space, confirmed, number)) for number in range(data.draw(st.integers(0, 5)))]
    study = SimulatedStudy(Truth(space), budget=5)
    history = replace(study.history(), atlas=Atlas(tuple(dead)))
    domains = [each.domain for each in space.parameters.values()]
    everything = [dict(zip(space.parameters, values, strict=True)) for values in itertools.product(*domains)]
    alive = {str(point) for point in everything if not any(each.blocks(point) for each in dead)}
    drawn = {str(point) for point in random_points(history, random.Random(0), DRAWS * len(everything))}
    assert drawn == alive
