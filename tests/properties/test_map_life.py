"""The life of the map: what is inherited, goes stale, is refuted, forgotten, or escaped from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.deadends.charter import Charter, chart
from agent.deadends.claims import RUNG_ORDER
from agent.deadends.dead_end import DeadEnd, DeadEndState, EscapeState
from agent.deadends.inheritance import Ancestor, inherit
from agent.outcome import Outcome
from agent.propose.history import History
from agent.propose.order import Launches, Proposal
from agent.reasons import Reason
from agent.store.trial import Kind, Trial
from runners import Rung
from search_spaces import Condition, SearchSpace
from tests.support.lives import (
    PASSED,
    dead_ends_of,
    failed,
    handed_on,
    space_with_variants,
    split,
    two_failures,
)
from tests.support.planted import FACTS, Planted, Truth, small_space
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import arbitrary_evidence, numbered

OTHER_NCCL = {**FACTS, "nccl": "2.30"}
OTHER_ENGINE = {**FACTS, "engine_version": "2"}
B = (Condition(parameter="backend", value="b"),)
DEFAULT = small_space().default_on(FACTS)


@settings(max_examples=150)
@given(arbitrary_evidence(), st.sampled_from(["nccl", "engine_version", "device"]))
def test_what_is_inherited_blocks_only_where_its_facts_are_the_same(
    evidence: tuple[SearchSpace, list[Trial]], changed: str
) -> None:
    """A dead end that depends on a fact which differs is stale, and a stale one blocks nothing."""
    space, trials = evidence
    facts = {**FACTS, changed: "another"}
    old = chart(*split(trials), space, FACTS).dead_ends
    inherited = inherit([Ancestor("old", space, FACTS, old)], space, facts)
    assert len(inherited) == sum(found.state is DeadEndState.CONFIRMED for found in old)
    for found in inherited:
        is_stale = found.state is DeadEndState.STALE
        assert is_stale == (changed in found.depends_on)
        assert found.blocks(found.observed) == (not is_stale)


@settings(max_examples=150)
@given(arbitrary_evidence(), arbitrary_evidence())
def test_one_pass_refutes_what_is_inherited(
    before: tuple[SearchSpace, list[Trial]], after: tuple[SearchSpace, list[Trial]]
) -> None:
    """Whatever an earlier study believed: a pass in it, at its rung or above it, and it blocks nothing any more."""
    space, trials = before
    old = chart(*split(trials), space, FACTS).dead_ends
    inherited = inherit([Ancestor("old", space, FACTS, old)], space, FACTS)
    for found in inherited:
        rung = Rung.FULL
        passed = numbered([(found.observed, rung, PASSED)])
        atlas = chart(*split(passed), space, FACTS, inherited)
        refuted = [
            each for each in atlas.dead_ends if each.conditions == found.conditions and each.reason is found.reason
        ]
        assert [each.state for each in refuted] == [DeadEndState.REFUTED]
        assert refuted[0].contradicting == ("#0",)
        assert atlas.match(found.observed) is None


@settings(max_examples=100)
@given(arbitrary_evidence(), st.data())
def test_a_map_with_inherited_dead_ends_is_a_function_of_the_trials(
    evidence: tuple[SearchSpace, list[Trial]], data: st.DataObject
) -> None:
    """Kept up to date, or charted anew at any prefix: the same map, with what is inherited or forgotten too."""
    space, trials = evidence
    half = data.draw(st.integers(0, len(trials)))
    old = chart(*split(numbered(_rows(trials[:half]))), space, FACTS).dead_ends
    inherited = inherit([Ancestor("old", space, FACTS, old)], space, data.draw(st.sampled_from([FACTS, OTHER_NCCL])))
    forgotten = frozenset(data.draw(st.sets(st.sampled_from(["#0", "#1", "p0", *(each.id for each in old)]))))
    new = numbered(_rows(trials[half:]))
    charter = Charter(space, FACTS, inherited)
    for end in range(1, len(new) + 1):
        parts = split(new[:end])
        assert charter.chart(*parts, forgotten) == chart(*parts, space, FACTS, inherited, forgotten)


def _rows(trials: list[Trial]) -> list[tuple[dict[str, object], Rung, Outcome]]:
    return [(trial.work.resolved, trial.work.rung, trial.outcome) for trial in trials]  # type: ignore[misc]


def test_a_stale_dead_end_that_fails_again_holds_under_the_facts_of_now() -> None:
    """One failure for the same reason confirms it again: it keeps where it came from, and gets the new scope."""
    space = small_space()
    rows = two_failures(space, Reason.CUDA_GRAPH_INCOMPATIBLE)
    inherited = handed_on(rows, space, OTHER_NCCL)
    assert [found.state for found in inherited] == [DeadEndState.STALE]
    again = numbered([(DEFAULT, Rung.FULL, PASSED), ({**DEFAULT, "backend": "b"}, Rung.FULL, rows[2][2])])
    (found,) = chart(again, [], space, OTHER_NCCL, inherited).dead_ends
    assert (found.state, found.support, found.scope["nccl"]) == (DeadEndState.CONFIRMED, ("#1",), "2.30")
    assert found.origin is not None and found.origin.study == "old"


def test_a_failure_for_another_reason_says_nothing_about_a_stale_dead_end() -> None:
    """It is still not known whether the old reason holds."""
    space = small_space()
    inherited = handed_on(two_failures(space, Reason.CUDA_GRAPH_INCOMPATIBLE), space, OTHER_NCCL)
    other = numbered([({**DEFAULT, "backend": "b"}, Rung.FULL, failed(Reason.GPU_OOM, "graph"))])
    atlas = chart(other, [], space, OTHER_NCCL, inherited)
    assert [found.conditions for found in atlas.stale] == [B]


def test_what_the_old_study_could_not_vary_belongs_to_what_it_found() -> None:
    """A pinned parameter was part of every failure: beyond its value nothing is known."""
    space = small_space()
    pinned = space.narrowed({"expert": False}, {})
    both = two_failures(space, Reason.UNSUPPORTED_ARCH)
    rows = [({**point, "expert": False}, rung, outcome) for point, rung, outcome in both]
    (found,) = handed_on(rows, pinned, FACTS, to=space)
    assert found.blocks({**DEFAULT, "backend": "b"})
    assert not found.blocks({**DEFAULT, "backend": "b", "expert": True})


def test_a_value_that_the_new_space_lacks_is_not_inherited() -> None:
    """A dead end over values that cannot be tried here says nothing here."""
    space = small_space()
    without = space.narrowed({}, {"backend": ("b",)})
    assert handed_on(two_failures(space, Reason.UNSUPPORTED_ARCH), space, FACTS, to=without) == ()


def test_of_several_studies_the_one_under_the_facts_of_now_counts() -> None:
    """What was confirmed elsewhere and refuted here is not checked a third time."""
    space = small_space()
    rows = two_failures(space, Reason.CUDA_GRAPH_INCOMPATIBLE)
    first = Ancestor("first", space, FACTS, dead_ends_of(rows, space))
    stale = inherit([first], space, OTHER_NCCL)
    passed = numbered([({**DEFAULT, "backend": "b"}, Rung.FULL, PASSED)])
    second = Ancestor("second", space, OTHER_NCCL, chart(passed, [], space, OTHER_NCCL, stale).dead_ends)
    assert inherit([first, second], space, OTHER_NCCL) == ()
    assert [found.state for found in inherit([first, second], space, FACTS)] == [DeadEndState.CONFIRMED]


def test_a_study_of_other_fixed_options_hands_on_nothing_that_blocks() -> None:
    """Another quantisation or another model: everything is to be checked again."""
    space = small_space()
    old = dead_ends_of(two_failures(space, Reason.UNSUPPORTED_ARCH), space)
    (found,) = inherit([Ancestor("old", space, FACTS, old, is_alike=False)], space, FACTS)
    assert found.state is DeadEndState.STALE


def test_a_confirmed_dead_end_that_a_trial_passed_in_is_shown_as_refuted() -> None:
    """The first thing that a pass in a dead end does is not to hide it."""
    space = small_space()
    rows = two_failures(space, Reason.ASSERTION)
    study = SimulatedStudy(Truth(space), budget=10, trials=numbered(rows))
    (known,) = study.history().atlas.confirmed
    study.asked = ()
    work = study.history().admit({**DEFAULT, "backend": "b", "draft": 3}, Kind.CONFIRM, "again", about=known.id)
    assert work is not None
    study._close(study._open(work))
    found = study.history().atlas.find(known.id)
    assert found is not None
    assert (found.state, found.contradicting) == (DeadEndState.REFUTED, ("#4",))
    assert study.history().atlas.match({**DEFAULT, "backend": "b", "draft": 3}) is None


def test_what_is_forgotten_no_longer_blocks_until_it_is_found_again() -> None:
    """Forgetting takes the dead end and the failures behind it off the map, and can be taken back."""
    space = small_space()
    trials = numbered(two_failures(space, Reason.ASSERTION))
    (known,) = chart(trials, [], space, FACTS).confirmed
    forgotten = frozenset([known.id, *known.support])
    charter = Charter(space, FACTS)
    assert charter.chart(trials, []).match({**DEFAULT, "backend": "b"}) is not None
    assert charter.chart(trials, [], forgotten).dead_ends == ()
    again = [*trials, *(each.model_copy(update={"number": each.number + 4}) for each in trials[2:])]
    assert [found.id for found in charter.chart(again, [], forgotten).confirmed] == [known.id]
    assert charter.chart(trials, []).confirmed == (known,)


def test_an_inherited_dead_end_can_be_forgotten() -> None:
    """It came without a trial of this study: its id is enough."""
    space = small_space()
    (found,) = handed_on(two_failures(space, Reason.ASSERTION), space, FACTS)
    assert chart([], [], space, FACTS, (found,)).match({**DEFAULT, "backend": "b"}) == found
    assert chart([], [], space, FACTS, (found,), frozenset([found.id])).dead_ends == ()


def _with_dead_b(reason: Reason = Reason.UNSUPPORTED_ARCH, *more: Planted) -> Truth:
    return Truth(space_with_variants(), (Planted(B, reason), *more))


def _proposals(truth: Truth, budget: int = 30) -> tuple[SimulatedStudy, list[tuple[History, Proposal]]]:
    seen: list[tuple[History, Proposal]] = []
    study = SimulatedStudy(truth, budget, on_proposal=lambda history, proposal: seen.append((history, proposal)))
    study.run()
    return study, seen


def test_a_locked_value_is_tried_only_as_an_escape_until_one_passed() -> None:
    """Before that no step may propose it; afterwards the search uses it like any other."""
    study, seen = _proposals(_with_dead_b())
    is_open, escapes, others = False, 0, 0
    for history, proposal in seen:
        is_open = is_open or any(
            trial.is_measured and trial.work.resolved["backend"] == "d" for trial in (*history.trials, *history.probes)
        )
        for work in proposal.works if isinstance(proposal, Launches) else ():
            if work.requested["backend"] == "d" and not is_open:
                assert work.about.startswith("escape of D")
                escapes += 1
            elif work.requested["backend"] == "d":
                others += 1
    assert escapes == 1
    assert others > 1
    (found,) = [each for each in study.history().atlas.dead_ends if each.conditions == B]
    assert [(each.changes, each.state) for each in found.escapes] == [("backend=d", EscapeState.WORKED)]


def test_an_escape_that_fails_stays_locked_and_is_not_tried_twice() -> None:
    """Its value never runs outside the escape."""
    dead_d = Planted((Condition(parameter="backend", value="d"),), Reason.TOPOLOGY_UNSUPPORTED)
    study, _ = _proposals(_with_dead_b(Reason.UNSUPPORTED_ARCH, dead_d))
    with_d = [work for work in study.works if work.resolved["backend"] == "d"]
    assert len({work.identity for work in with_d}) == len(with_d)
    assert all(work.about or work.repeat for work in with_d)
    (found,) = [each for each in study.history().atlas.dead_ends if each.conditions == B]
    assert [each.state for each in found.escapes] == [EscapeState.FAILED]


def test_the_user_may_try_a_locked_value() -> None:
    """A lock binds the search, not the user."""
    space = space_with_variants()
    wanted = {**space.default_on(FACTS), "backend": "d"}
    study = SimulatedStudy(Truth(space), 6, asked=(wanted,))
    study.run()
    assert any(work.requested == wanted for work in study.works)


@pytest.mark.parametrize("rung", [Rung.PROBE, Rung.FULL])
def test_a_stale_dead_end_is_checked_early_and_once_at_the_rung_that_shows_it(rung: Rung) -> None:
    """A probe where a probe shows it; a launch, which counts as a confirmation, where only that does."""
    space = small_space()
    inherited = handed_on(two_failures(space, Reason.CUDA_GRAPH_INCOMPATIBLE, rung), space, OTHER_NCCL)
    assert [(found.state, found.rung) for found in inherited] == [(DeadEndState.STALE, rung)]
    study = SimulatedStudy(Truth(space), 20, inherited=inherited)
    study.run()
    (work,) = [work for work in study.works if work.about == inherited[0].id]
    assert (work.rung, work.kind) == (rung, Kind.PROBE if rung is Rung.PROBE else Kind.CONFIRM)
    assert work.resolved["backend"] == "b"
    searched = [work for work in study.works if work.kind is Kind.SEARCH]
    assert study.works.index(work) < study.works.index(searched[0]) or rung is Rung.PROBE
    assert any(work.resolved["backend"] == "b" for work in searched)
    (found,) = study.history().atlas.dead_ends
    assert found.state is DeadEndState.REFUTED


def test_what_still_holds_is_never_launched_in_the_next_study() -> None:
    """The point of inheriting: no node time in what is known dead."""
    truth = Truth(small_space(), (Planted(B, Reason.UNSUPPORTED_ARCH),))
    first = SimulatedStudy(truth, 30)
    first.run()
    inherited = inherit([Ancestor("first", truth.space, FACTS, first.history().atlas.dead_ends)], truth.space, FACTS)
    assert B in [found.conditions for found in inherited]
    second = SimulatedStudy(truth, 30, inherited=inherited, seed=1)
    second.run()
    assert not [work for work in second.works if work.resolved["backend"] == "b"]


def test_a_recheck_that_the_user_asked_for_runs_once_even_with_the_budget_spent() -> None:
    """A probe costs no launch; what it finds is on the map."""
    truth = Truth(small_space(), (Planted(B, Reason.UNSUPPORTED_ARCH),))
    study = SimulatedStudy(truth, 20)
    study.run()
    known = next(found for found in study.history().atlas.confirmed if found.conditions == B)
    assert known.rung is Rung.PROBE
    before = len(study.probes)
    again = replace(study, rechecks={known.id: 1}, truth=Truth(small_space()))
    again.run()
    assert [probe.work.about for probe in again.probes[before:]] == [known.id]
    states = {found.conditions: found.state for found in again.history().atlas.dead_ends}
    assert states[B] in (DeadEndState.REFUTED, DeadEndState.FLAKY)
    assert RUNG_ORDER[known.rung] <= RUNG_ORDER[again.probes[-1].work.rung]


def test_scope_is_compared_as_it_was_stored() -> None:
    """A list that was read from JSON equals the tuple that was just found."""
    (found,) = dead_ends_of(two_failures(small_space(), Reason.ASSERTION), small_space())
    stored = DeadEnd.model_validate_json(found.model_dump_json())
    assert stored == found
    assert stored.holds_on(FACTS)
    assert not stored.holds_on(OTHER_ENGINE)
