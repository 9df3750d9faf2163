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


def neighbours(space: SearchSpace, name: str) -> list[str]:
    """Return the parameters that decide whether one has a meaning, and those that share a relation with it."""
    found = [name]
    for other in found:
        found += [above for above in space.parameters[other].active_when if above not in found]
    shared = {other for relation in space.relations if name in relation.parameters for other in relation.parameters}
    for other in sorted(shared - set(found)):
        found += [other, *(above for above in space.parameters[other].active_when if above not in found)]
    return [other for other in dict.fromkeys(found) if other != name]


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("facts", [CPU, CUDA])
def test_every_value_of_a_shipped_space_is_reachable(name: str, facts: Mapping[str, object]) -> None:
    """On a node where its parameter has a meaning, some valid assignment has it."""
    space = load_space(name)
    base = space.normalise(space.default_on(facts), facts)
    for parameter_name, each in space.parameters.items():
        if not all(facts.get(fact) in allowed for fact, allowed in each.active_where.items()):
            continue
        others = neighbours(space, parameter_name)
        missing = set(each.domain)
        for values in itertools.product(*(space.parameters[other].domain for other in others)):
            for value in sorted(missing, key=str):
                point = {**base, **dict(zip(others, values, strict=True)), parameter_name: value}
                wanted = space.normalise(point, facts)
                if wanted[parameter_name] == value and space.violation(wanted, facts) is None:
                    missing.discard(value)
            if not missing:
                break
        assert not missing, (parameter_name, missing)


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("facts", [CPU, CUDA])
def test_a_shipped_space_starts_from_points_that_obey_it(name: str, facts: Mapping[str, object]) -> None:
    """Default, baseline and every rung of the ladder may be launched."""
    space = load_space(name)
    point = space.default_on(facts)
    for step in ({}, *space.fallbacks, space.baseline):
        point = {**point, **step}
        space.check(space.normalise(point, facts))


@pytest.mark.parametrize("name", catalogue())
def test_a_shipped_space_survives_storage_and_narrowing(name: str) -> None:
    """A study stores its space as JSON; a pinned value takes the switches of the others away with it."""
    space = load_space(name)
    assert SearchSpace.model_validate_json(space.model_dump_json()) == space
    for pinned, each in space.parameters.items():
        narrowed = space.narrowed({pinned: each.default}, {})
        assert SearchSpace.model_validate_json(narrowed.model_dump_json()) == narrowed


@pytest.mark.parametrize("name", ["sglang", "vllm"])
@given(data=st.data())
def test_normalising_an_engine_space_twice_changes_nothing(name: str, data: st.DataObject) -> None:
    """Idempotent also where the engine forces values; what breaks a relation keeps breaking it."""
    space = load_space(name)
    facts = {"device": data.draw(st.sampled_from(["cpu", "cuda"])), "num_ranks": data.draw(st.sampled_from([1, 2, 6]))}
    once = space.normalise(data.draw(assignments(space)), facts)
    assert space.normalise(once, facts) == once


def test_a_value_may_need_several_switches_and_gets_exactly_those() -> None:
    """Every switch of the value, none of another one, and nothing of a parameter without meaning."""
    space = load_space("sglang")
    default = space.default_on(CUDA)
    assert space.options(default) == {} and space.environment(default) == {}
    legacy = {**default, "allreduce": "custom_legacy", "cuda_graph_max_bs": 0, "nccl_algo": "Tree"}
    assert space.options(legacy) == {
        "enforce-disable-flashinfer-allreduce-fusion": True,
        "disable-decode-cuda-graph": True,
    }
    assert space.environment(legacy) == {"SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2": "0"}
    chain = {**default, "speculative_algorithm": "EAGLE3", "cuda_graph_max_bs": 8}
    assert space.options(chain) == {
        "speculative-algorithm": "EAGLE3",
        "speculative-num-steps": "3",
        "speculative-eagle-topk": "1",
        "speculative-num-draft-tokens": "4",
        "cuda-graph-max-bs": "8",
    }


def test_a_variable_belongs_to_its_own_parameter_before_one_that_sets_it_among_others() -> None:
    """A message about NCCL_CUMEM_ENABLE blames the parameter of that name, one about a switch its backend."""
    space = load_space("vllm")
    assert space.env_names["NCCL_CUMEM_ENABLE"] == "nccl_cumem_enable"
    assert space.env_names["VLLM_ALLREDUCE_USE_SYMM_MEM"] == "allreduce"
    assert space.flag_names["--disable-custom-all-reduce"] == "allreduce"
    assert space.flag_names["--max-num-seqs"] == "max_num_seqs"


def test_what_the_engine_forces_is_part_of_the_point() -> None:
    """SGLang: a chain verifies steps + 1 tokens; an all-to-all backend takes all ranks."""
    space, facts = load_space("sglang"), {**CUDA, "num_ranks": 4}
    point = {**space.default_on(facts), "speculative_algorithm": "EAGLE3", "speculative_num_steps": 5}
    assert space.normalise(point, facts)["speculative_num_draft_tokens"] == 6
    tree = {**point, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 16}
    assert space.normalise(tree, facts)["speculative_num_draft_tokens"] == 16
    spread = space.normalise({**point, "moe_a2a_backend": "deepep", "ep_size": 2}, facts)
    assert spread["ep_size"] == 4 and space.violation(spread, facts) is None
    odd = space.normalise({**point, "moe_a2a_backend": "deepep"}, {**facts, "num_ranks": 6})
    assert "ep_size=1" in (space.violation(odd, {**facts, "num_ranks": 6}) or "")


@pytest.mark.parametrize(
    ("facts", "holds"),
    [({}, True), ({"num_ranks": 8}, True), ({"num_ranks": 6}, False), ({"num_ranks": 8, "num_experts": 1}, False)],
)
def test_a_divisor_is_bound_by_the_facts_that_are_known(facts: Mapping[str, object], holds: bool) -> None:
    """Four ranks of experts: of eight ranks, not of six, and never in a dense model."""
    space = load_space("sglang")
    assert (space.violation({**space.default_on({}), "ep_size": 4}, facts) is None) is holds


def test_a_rule_binds_only_where_it_says() -> None:
    """`where` is a condition in front of any rule."""
    rule = relation(where={"kind": ["a"]}, divides={"divisor": "part", "of": "whole"})
    assert rule.holds({"kind": "b", "part": 3, "whole": 8}) and not rule.holds({"kind": "a", "part": 3, "whole": 8})
    assert not rule.holds({"kind": "a", "part": 0, "whole": 8}) and rule.holds({"kind": "a", "part": "x", "whole": 8})
    assert not rule.can_hold({"kind": ("a",), "part": (3,), "whole": (8,)})
    assert rule.can_hold({"kind": ("a", "b"), "part": (3,), "whole": (8,)})


def test_parameters_without_a_proof_can_be_listed() -> None:
    """The report says of which ones nobody can tell whether they took effect."""
    assert load_space("sglang").unproven == () and load_space("vllm").unproven == ()
    assert set(small_space().unproven) == set(small_space().parameters)


def test_the_word_for_the_engines_own_choice_stands_outside_the_order() -> None:
    """An ordered parameter may have one value that is no number: the one that says nothing."""
    assert parameter(("auto", 1, 2), "auto", unset="auto", monotone=True).text("auto") is None
    with pytest.raises(ValueError, match="'unset'"):
        parameter(("auto", 1, 2), "auto", monotone=True)


@pytest.mark.parametrize("name", ["sglang", "vllm"])
def test_a_space_of_a_server_stays_searchable_and_says_what_it_knows(name: str) -> None:
    """At most twenty parameters; each with source and proof, and a unit where its values are counted."""
    space = load_space(name)
    assert 10 <= len(space.parameters) <= 20
    for each in space.parameters.values():
        assert any(char.isdigit() for char in each.source)  # software and version
        counted = [value for value in each.domain if isinstance(value, int | float) and not isinstance(value, bool)]
        assert each.unit or len(counted) <= 2
        assert all(variant.why for variant in each.near)


@pytest.mark.parametrize("name", catalogue())
def test_no_value_forces_a_protocol_that_corrupts_data(name: str) -> None:
    """LL128 is wrong on links that do not carry 128 bytes whole; it may be excluded, never forced."""
    for each in load_space(name).parameters.values():
        texts = [each.switches_of(value).env.get("NCCL_PROTO", "") for value in each.domain]
        assert all("LL128" not in text or text.startswith("^") for text in texts)


@pytest.mark.parametrize("name", ["sglang", "vllm"])
def test_the_bare_tree_has_the_scoped_one_as_its_escape(name: str) -> None:
    """Bare, it leaves the all-gather without an algorithm."""
    algorithm = load_space(name).parameters["nccl_algo"]
    assert [dict(each.instead) for each in algorithm.near if each.value == "Tree"] == [{"nccl_algo": "allreduce:tree"}]


def test_what_hangs_on_a_value_that_is_left_out_has_nothing_to_choose() -> None:
    """Without speculation nobody chooses its steps; with one method of two left, they are chosen."""
    space, facts = load_space("sglang"), {"device": "cuda", "num_ranks": 2, "num_experts": 64}
    steps = {"speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"}
    assert steps <= set(space.varying(facts))
    assert not steps & set(space.narrowed({"speculative_algorithm": "none"}, {}).varying(facts))
    only_ngram = space.narrowed({"speculative_algorithm": "NGRAM"}, {}).varying(facts)
    assert steps & set(only_ngram) == {"speculative_num_draft_tokens"}


def test_what_hangs_on_something_without_a_meaning_here_has_none_either() -> None:
    space = load_space("sglang")
    assert "nccl_algo" in space.varying({"device": "cuda"})
    assert "nccl_algo" not in space.varying({"device": "cpu"})
    assert "nccl_algo" not in space.narrowed({"allreduce": "custom"}, {}).varying({"device": "cuda"})
