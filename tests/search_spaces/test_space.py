"""What a space means: values, defaults, activity, relations, narrowing, and how the engine is told."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import (
    IntRange,
    Relation,
    Scalar,
    SearchSpace,
    SpecificationError,
    assignment_key,
    catalogue,
    changed_parameters,
    load_space,
)
from tests.support.planted import parameter, small_space
from tests.support.strategies import assignments, spaces

CPU: Mapping[str, object] = {"device": "cpu"}
CUDA: Mapping[str, object] = {"device": "cuda"}


def chain() -> SearchSpace:
    """Three parameters, each of which needs the one before it; the last one also needs a GPU."""
    return SearchSpace(
        engine="synthetic",
        parameters={
            "first": parameter((False, True), False),
            "second": parameter((0, 1, 2), 0, active_when={"first": (True,)}),
            "third": parameter(("x", "y"), "x", active_when={"second": (1, 2)}, active_where={"device": ("cuda",)}),
        },
    )


def relation(**rule: object) -> Relation:
    """Return a relation."""
    return Relation.model_validate({"why": "because", **rule})


def with_relation(rule: Relation) -> SearchSpace:
    """Return the small space with a relation."""
    return small_space().model_copy(update={"relations": (rule,)})


def test_inactive_parameters_stand_at_their_default_down_the_whole_chain() -> None:
    """What has no meaning beside the other values is not part of the point."""
    full = {"first": True, "second": 2, "third": "y"}
    assert chain().normalise(full, CUDA) == full
    assert chain().normalise({**full, "first": False}, CUDA) == {"first": False, "second": 0, "third": "x"}
    assert chain().normalise(full, CPU) == {**full, "third": "x"}


def test_activity_tells_true_from_one() -> None:
    """A switch and a number are different values, whatever Python says."""
    assert chain().normalise({"first": 1, "second": 2, "third": "x"}, CUDA)["second"] == 0


@given(spaces().flatmap(lambda space: st.tuples(st.just(space), assignments(space))))
def test_normalising_twice_changes_nothing(drawn: tuple[SearchSpace, dict[str, Scalar]]) -> None:
    """Idempotent, for spaces without conditions."""
    space, assignment = drawn
    assert space.normalise(assignment, CPU) == assignment


@given(assignments(chain()), st.sampled_from([CPU, CUDA]))
def test_normalising_a_chain_twice_changes_nothing(assignment: dict[str, Scalar], facts: Mapping[str, object]) -> None:
    """Idempotent, for conditions on conditions."""
    once = chain().normalise(assignment, facts)
    assert chain().normalise(once, facts) == once


@given(assignments(load_space("torch")), st.sampled_from([CPU, CUDA]))
def test_normalising_the_shipped_space_twice_changes_nothing(
    assignment: dict[str, Scalar], facts: Mapping[str, object]
) -> None:
    """Idempotent, for the space that is used."""
    space = load_space("torch")
    once = space.normalise(assignment, facts)
    assert space.normalise(once, facts) == once


@given(spaces())
def test_the_text_of_every_value_is_read_back_as_that_value(space: SearchSpace) -> None:
    """`--pin name=value` reaches every value, with its type."""
    for name, each in space.parameters.items():
        for value in each.domain:
            for typed in (value, str(value), str(value).upper()):
                found = space.parse_value(name, typed)
                assert type(found) is type(value) and found == value


def test_a_number_is_no_switch_and_a_switch_no_number() -> None:
    """True is not 1."""
    space = small_space()
    for name, value in (("expert", 1), ("expert", 0), ("draft", True), ("draft", 1.0), ("draft", None), ("draft", [1])):
        with pytest.raises(SpecificationError):
            space.parse_value(name, value)


def test_an_unknown_parameter_or_value_is_answered_with_the_valid_ones() -> None:
    """The error carries the name it is about."""
    with pytest.raises(SpecificationError, match="'draft'") as caught:
        small_space().parse_value("drft", 1)
    assert caught.value.key == "drft"
    with pytest.raises(SpecificationError, match="0, 1, 2, 3"):
        small_space().parse_value("draft", 9)


@given(assignments(small_space()), st.permutations(list(small_space().parameters)))
def test_equal_launches_have_equal_keys_whatever_the_order(assignment: dict[str, Scalar], order: list[str]) -> None:
    """The key depends on names and values only."""
    assert assignment_key({name: assignment[name] for name in order}) == assignment_key(assignment)


def test_different_assignments_have_different_keys() -> None:
    """Also where they differ in a type only."""
    domains = [each.domain for each in small_space().parameters.values()]
    points = [dict(zip(small_space().parameters, values, strict=True)) for values in itertools.product(*domains)]
    assert len({assignment_key(point) for point in points}) == len(points)
    assert len({assignment_key({"a": value}) for value in (1, True, "1", 1.5)}) == 4


def test_changed_parameters_are_named_in_the_order_of_the_first() -> None:
    """What differs, and nothing else."""
    default = small_space().default_on(CPU)
    assert changed_parameters(default, {**default, "expert": True, "backend": "b"}) == ("backend", "expert")


def test_the_default_depends_on_the_node() -> None:
    """The first entry whose facts match wins; without a match it is the general default."""
    each = parameter(("a", "b", "c"), "a", default_where=[{"facts": {"device": "cuda"}, "value": "b"}])
    assert [each.default_on(facts) for facts in (CPU, CUDA, {})] == ["a", "b", "a"]


def test_an_implication_binds_only_where_its_condition_is_met() -> None:
    """`if` and `then` are sets of values."""
    rule = relation(implies={"if": {"backend": ["a", "b"]}, "then": {"draft": [0, 1]}})
    space, default = with_relation(rule), small_space().default_on(CPU)
    assert space.violation({**default, "backend": "c", "draft": 3}) is None
    assert space.violation({**default, "backend": "b", "draft": 1}) is None
    assert "because" in (space.violation({**default, "backend": "b", "draft": 3}) or "")


def test_at_most_compares_numbers_and_lets_words_pass() -> None:
    """`auto` puts no bound."""
    rule = relation(at_most={"left": "low", "right": "high"})
    assert rule.holds({"low": 1, "high": 1}) and not rule.holds({"low": 2, "high": 1})
    assert rule.holds({"low": "auto", "high": 1}) and rule.holds({"low": 9, "high": "auto"})


@given(
    st.sets(st.integers(0, 3), min_size=1),
    st.sets(st.integers(0, 3), min_size=1),
    st.sets(st.integers(0, 3)),
    st.sets(st.integers(0, 3)),
    st.booleans(),
)
def test_a_relation_can_hold_exactly_if_some_combination_obeys_it(
    left: set[int], right: set[int], condition: set[int], consequence: set[int], is_bound: bool
) -> None:
    """The short cut answers what looking at every combination would."""
    implies = {"if": {"left": sorted(condition)}, "then": {"right": sorted(consequence)}}
    rule = relation(at_most={"left": "left", "right": "right"}) if is_bound else relation(implies=implies)
    points = [{"left": one, "right": other} for one in left for other in right]
    expected = any(rule.holds(point) for point in points)
    assert rule.can_hold({"left": tuple(left), "right": tuple(right)}) == expected


def test_a_relation_over_many_parameters_is_judged_at_once() -> None:
    """A file must not be able to keep the loader busy for ever: 12 parameters of 50 values are 50^12 combinations."""
    names = [f"p{index}" for index in range(12)]
    rule = relation(implies={"if": {}, "then": {name: [99] for name in names}})
    assert not rule.can_hold({name: tuple(range(50)) for name in names})


def test_narrowing_leaves_nothing_else_to_be_tried() -> None:
    """Pins and excludes hold for domain, default, baseline and fallbacks."""
    space = small_space().narrowed({"backend": "b"}, {"draft": (0, 2), "graph": (4,)})
    assert space.parameters["backend"].domain == ("b",)
    assert space.parameters["draft"].domain == (1, 3)
    assert space.default_on(CPU) == {"backend": "b", "draft": 1, "graph": 0, "expert": False}
    assert space.baseline == {}
    assert space.fallbacks == ({"graph": 1}, {"graph": 0})
    assert small_space().parameters["backend"].domain == ("a", "b", "c", "d")


def test_narrowing_tells_true_from_one() -> None:
    """Excluding the number 1 leaves the switch alone."""
    assert small_space().narrowed({}, {"expert": (1,)}).parameters["expert"].domain == (False, True)


def test_a_narrowed_range_stays_a_range_where_it_can() -> None:
    """A sampler keeps the order of a range; what has gaps becomes a list of values."""
    space = load_space("torch")
    upper = space.narrowed({}, {"draft_length": (0, 1)}).parameters["draft_length"]
    gap = space.narrowed({}, {"draft_length": (4,)}).parameters["draft_length"]
    assert upper.range == IntRange(low=2, high=8) and upper.values is None
    assert gap.range is None and gap.domain == (0, 1, 2, 3, 5, 6, 7, 8)
    assert space.narrowed({"draft_length": 3}, {}).parameters["draft_length"].domain == (3,)


def test_narrowing_to_nothing_or_against_a_relation_is_refused() -> None:
    """Before anything is launched."""
    space = load_space("torch")
    with pytest.raises(SpecificationError, match="leave at least one"):
        space.narrowed({}, {"expert_parallel": (False, True)})
    with pytest.raises(SpecificationError, match="can satisfy"):
        space.narrowed({"nccl_min_ctas": 32, "nccl_max_ctas": 1}, {})


def test_narrowing_that_leaves_defaults_at_odds_is_refused() -> None:
    """Otherwise no rung of the ladder could be launched, and the study would say that nothing works."""
    with pytest.raises(SpecificationError, match="Pin one"):
        load_space("torch").narrowed({}, {"nccl_min_ctas": ("auto",), "nccl_max_ctas": ("auto",)})


def test_flags_and_variables_are_told_apart_and_unset_says_nothing() -> None:
    """`unset` leaves the variable alone; a switch is on or off."""
    space = load_space("torch")
    assignment = {**space.default_on(CUDA), "nccl_algo": "allreduce:tree", "expert_parallel": True}
    assert space.options(assignment) == {
        "allreduce": "nccl",
        "draft-length": "3",
        "cuda-graph-max-bs": "8",
        "expert-parallel": "on",
    }
    assert space.environment(assignment) == {"NCCL_ALGO": "allreduce:tree"}


def test_unset_tells_false_from_zero() -> None:
    """A switch that is off is said, although False equals 0."""
    assert parameter((False, True), False, unset=0).text(False) == "off"
    assert parameter((0, 1), 0, unset=0).text(0) is None


def test_single_changes_differ_in_one_parameter_and_miss_none() -> None:
    """The screen walks them in the order of expected effect."""
    space = small_space()
    default = space.default_on(CPU)
    changes = list(space.single_changes(default))
    assert all(len(changed_parameters(default, change)) == 1 for change in changes)
    assert len(changes) == sum(len(each.domain) - 1 for each in space.parameters.values())
    assert list(space.single_changes(default, ("expert",))) == [{**default, "expert": True}]


def test_the_fingerprint_follows_the_content() -> None:
    """Two studies share a name only when their spaces are equal."""
    assert small_space().fingerprint == small_space().fingerprint
    assert small_space().narrowed({"backend": "b"}, {}).fingerprint != small_space().fingerprint


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("facts", [CPU, CUDA])
def test_every_value_of_a_shipped_space_is_reachable(name: str, facts: Mapping[str, object]) -> None:
    """On a node where its parameter has a meaning, some valid assignment has it."""
    space = load_space(name)
    base = space.normalise(space.default_on(facts), facts)
    for parameter_name, each in space.parameters.items():
        if not all(facts.get(fact) in allowed for fact, allowed in each.active_where.items()):
            continue
        needed = {other: allowed[0] for other, allowed in each.active_when.items()}
        for value in each.domain:
            wanted = space.normalise({**base, **needed, parameter_name: value}, facts)
            assert wanted[parameter_name] == value, (parameter_name, value)
            assert space.violation(wanted) is None


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("facts", [CPU, CUDA])
def test_a_shipped_space_starts_from_points_that_obey_it(name: str, facts: Mapping[str, object]) -> None:
    """Default, baseline and every rung of the ladder may be launched."""
    space = load_space(name)
    point = space.default_on(facts)
    for step in ({}, *space.fallbacks, space.baseline):
        point = {**point, **step}
        space.check(space.normalise(point, facts))
    assert len(space.env_names) == sum(each.env is not None for each in space.parameters.values())
