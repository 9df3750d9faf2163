"""What a modelled node does with an assignment: arithmetic, failures in their order, silent fallbacks, the best."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from runners import Phase, Rung
from search_spaces import best, cause, true_value
from search_spaces.node_generator import generate, random_assignments
from search_spaces.node_parts import PHASES, Wanted
from tests.support.small_node import small_data, small_node

BASE = {"backend": "a", "draft": 2, "graph": 8, "expert": False}


def rates(**changes: object) -> list[float]:
    node = small_node()
    effective, _ = node.answers.resolved({**BASE, **changes})  # type: ignore[dict-item]
    return [node.answers.figures(effective, level).tok_per_s for level in (1, 8)]


def test_a_step_is_computing_and_communication_and_drafting() -> None:
    """rows = concurrency x (drafted + 1); emitted = 1 + p1 + p1 p2."""
    step_us = (1000 + 10 * 3) + 100 * (10 + 1 * 3) + 2 * 100
    assert rates()[0] == pytest.approx(1e6 * (1 + 0.8 + 0.8 * 0.5) / step_us)


def test_without_a_draft_one_token_is_emitted_and_nothing_is_drafted() -> None:
    assert rates(draft=0)[1] == pytest.approx(8e6 / ((1000 + 80) + 100 * (10 + 8)))


def test_the_last_acceptance_goes_on_for_longer_drafts() -> None:
    emitted = 1 + 0.8 + 0.8 * 0.5 + 0.8 * 0.5 * 0.5
    assert rates(draft=3)[0] == pytest.approx(1e6 * emitted / ((1000 + 40) + 100 * 14 + 300))


def test_effects_multiply_their_component_and_then_add() -> None:
    step_us = (1030 + 1300 * 0.5 + 200) * 2 + 500
    assert rates(backend="b", expert=True, graph=0)[0] == pytest.approx(2.2e6 / step_us)


def test_the_objective_is_the_geometric_mean_over_the_levels() -> None:
    assert true_value(small_node(), BASE) == pytest.approx(math.sqrt(math.prod(rates())))
    assert true_value(small_node(), BASE, (8,)) == pytest.approx(rates()[1])


def test_a_failing_assignment_has_no_value_and_a_cause() -> None:
    node, dead = small_node(), {**BASE, "graph": 64, "expert": True}
    found = cause(node, dead)
    assert found is not None and found.name == "too-large"
    assert true_value(node, dead) is None
    assert cause(node, dead, Rung.PROBE) is None, "a probe does not show it"


def test_a_flaky_failure_is_no_cause_and_takes_nothing_from_the_value() -> None:
    assert cause(small_node(), {**BASE, "draft": 3}) is None
    assert true_value(small_node(), {**BASE, "draft": 3}) is not None


def test_of_two_failures_the_one_of_the_earlier_phase_shows() -> None:
    found = cause(small_node(), {**BASE, "backend": "c", "graph": 64, "expert": True})
    assert found is not None and found.name == "no-path", "although it stands below the other one in the file"


def test_a_failure_needs_the_facts_it_asks_for() -> None:
    upgraded = {**small_data()["facts"], "cuda": "13.1"}
    assert cause(small_node(), {**BASE, "backend": "c"}) is not None
    assert cause(small_node(facts=upgraded), {**BASE, "backend": "c"}) is None


def test_a_silent_fallback_runs_as_what_it_is_resolved_to() -> None:
    node, requested = small_node(), {**BASE, "draft": 1, "expert": True, "graph": 64}
    effective, taken = node.answers.resolved(requested)
    assert effective == {**requested, "expert": False} and len(taken) == 1
    assert true_value(node, requested) == true_value(node, effective), "and does not fail as the requested values would"
    assert node.answers.resolved(requested, told_only=True)[0] == requested, "the engine does not tell before"


def test_an_answer_changes_nothing_that_it_was_given() -> None:
    given = {**BASE, "draft": 1, "expert": True}
    true_value(small_node(), given)
    assert given == {**BASE, "draft": 1, "expert": True}


@pytest.mark.parametrize(
    ("wanted", "yes", "no"),
    [
        ({"values": (1, "x")}, [1, "x"], [True, 1.0, "y"]),
        ({"at_least": 2, "at_most": 4}, [2, 3.5, 4], [1, 5, "auto", True, None]),
        ({"at_most": "12.9"}, ["12.8", "12.9"], ["13.0", "none", None]),
        ({"at_least": "0.5.14"}, ["sglang 0.5.23", "0.5.14.post1"], ["sglang 0.5.9", "0.5"]),
    ],
)
def test_a_clause_compares_numbers_as_numbers_and_versions_as_versions(
    wanted: dict[str, object], yes: list[object], no: list[object]
) -> None:
    clause = Wanted.model_validate(wanted)
    assert [value for value in yes if not clause.holds_for(value)] == []
    assert [value for value in no if clause.holds_for(value)] == []


def test_the_phases_are_those_of_a_launch() -> None:
    """Node models cannot import the runners' phases: the names are pinned to them here."""
    assert tuple(phase.value for phase in Phase) == PHASES


@pytest.mark.parametrize("seed", range(4))
def test_the_best_is_the_best_of_all(seed: int) -> None:
    """Branch and bound against every assignment of a space that is narrow enough to list."""
    node = generate(seed, "small")
    kept = {name: each.domain[:3] for name, each in node.space.parameters.items()}
    narrow = node.space.narrowed(
        {}, {n: each.domain[3:] for n, each in node.space.parameters.items() if each.domain[3:]}
    )
    node = type(node)(node.file, narrow)
    points = (dict(zip(kept, values, strict=True)) for values in itertools.product(*kept.values()))
    values = [value for point in points if (value := true_value(node, point)) is not None]
    found = best(node)
    assert found is not None
    assert found.value == pytest.approx(max(values))
    assert true_value(node, found.assignment) == pytest.approx(found.value)


def test_values_that_help_only_together_are_found() -> None:
    """Each alone slows the node down, so no bound may give up on them before both are chosen."""
    data = small_data()
    data["performance"]["effects"] = [
        {"when": {"backend": ["c"]}, "component": "step", "times": 1.5, "why": "for a test"},
        {"when": {"expert": [True]}, "component": "step", "times": 1.5, "why": "for a test"},
        {"when": {"backend": ["c"], "expert": [True]}, "component": "step", "times": 0.2, "why": "for a test"},
    ]
    found = best(small_node(performance=data["performance"], failures=[], no_ops=[]))
    assert found is not None
    assert (found.assignment["backend"], found.assignment["expert"]) == ("c", True)


@pytest.mark.parametrize("size", ["medium", "large"])
def test_no_random_assignment_beats_the_best(size: str) -> None:
    node = generate(3, size)  # type: ignore[arg-type]
    found = best(node)
    assert found is not None
    values = [true_value(node, point) for point in random_assignments(node, random.Random(0), 400)]
    assert max(value for value in values if value is not None) <= found.value * (1 + 1e-9)


def test_where_nothing_works_there_is_no_best() -> None:
    everything = {"name": "all", "reason": "assertion", "phase": "spawn", "log": "AssertionError"}
    assert best(small_node(failures=[everything])) is None
