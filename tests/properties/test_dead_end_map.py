"""What the map of dead ends may conclude, for any evidence and for evidence with a truth behind it."""

from __future__ import annotations

import itertools
import random
import statistics

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.deadends.atlas import Atlas
from agent.deadends.charter import Charter, chart
from agent.deadends.claims import RUNG_ORDER
from agent.deadends.dead_end import DeadEndState
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from agent.store.trial import Kind, Trial
from runners import Rung
from search_spaces import Assignment, Scalar, SearchSpace
from search_spaces.condition import Condition, matches_all
from tests.support.planted import FACTS, Planted, Truth, small_space
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import arbitrary_evidence, numbered, truthful_evidence

PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)


def charted(trials: list[Trial], space: SearchSpace) -> Atlas:
    """Return the map of the trials, split into launches and probes."""
    launches, probes = split(trials)
    return chart(launches, probes, space, FACTS)


def split(trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Return launches and probes."""
    probes = [trial for trial in trials if trial.work.kind is Kind.PROBE]
    return [trial for trial in trials if trial.work.kind is not Kind.PROBE], probes


def failed(reason: Reason, *blames: str) -> Outcome:
    """Return a failure with these blames."""
    failure = Planted((), reason).failure.model_copy(update={"blames": blames})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def point(**changes: object) -> Assignment:
    """Return the small space's default with changes."""
    return {**small_space().default_on(FACTS), **changes}  # type: ignore[dict-item]


@settings(max_examples=250)
@given(arbitrary_evidence())
def test_no_pass_lies_in_a_confirmed_dead_end_of_its_rung_or_below(evidence: tuple[SearchSpace, list[Trial]]) -> None:
    """A pass at the dead end's rung or above it refutes the dead end, whatever else was seen."""
    space, trials = evidence
    for found in charted(trials, space).confirmed:
        for trial in trials:
            if trial.is_measured and RUNG_ORDER[trial.work.rung] >= RUNG_ORDER[found.rung]:
                assert not matches_all(found.conditions, trial.work.resolved)


@settings(max_examples=250)
@given(arbitrary_evidence())
def test_no_full_pass_is_blocked_at_all(evidence: tuple[SearchSpace, list[Trial]]) -> None:
    """What was seen to work may be launched, suspicions or not."""
    space, trials = evidence
    atlas = charted(trials, space)
    for trial in trials:
        if trial.is_measured and trial.work.rung is Rung.FULL:
            assert atlas.match(trial.work.resolved) is None


@settings(max_examples=150)
@given(arbitrary_evidence())
def test_a_map_kept_up_to_date_equals_the_map_charted_anew_at_every_prefix(
    evidence: tuple[SearchSpace, list[Trial]],
) -> None:
    """`Charter` skips charting where nothing can change: it must never skip more than that."""
    space, trials = evidence
    charter = Charter(space, FACTS)
    for end in range(1, len(trials) + 1):
        launches, probes = split(trials[:end])
        assert charter.chart(launches, probes) == chart(launches, probes, space, FACTS)


@settings(max_examples=150)
@given(arbitrary_evidence(), st.integers(0, 2**16))
def test_the_order_of_the_trials_does_not_change_what_is_concluded(
    evidence: tuple[SearchSpace, list[Trial]], seed: int
) -> None:
    """Two agents that saw the same in another order believe the same."""
    space, trials = evidence
    shuffled = [(trial.work.resolved, trial.work.rung, trial.outcome) for trial in trials]
    random.Random(seed).shuffle(shuffled)

    def conclusions(atlas: Atlas) -> set[object]:
        return {(found.conditions, found.reason, found.state) for found in atlas.dead_ends}

    assert conclusions(charted(numbered(shuffled), space)) == conclusions(charted(trials, space))  # type: ignore[arg-type]


@settings(max_examples=300)
@given(truthful_evidence())
def test_with_true_blames_nothing_that_works_is_ever_ruled_out(evidence) -> None:  # type: ignore[no-untyped-def]
    """Evidence that accuses the right parameters costs no working assignment: neither singles nor pairs overreach."""
    truth, trials = evidence
    atlas = charted(trials, truth.space)
    domains = [each.domain for each in truth.space.parameters.values()]
    for values in itertools.product(*domains):
        assignment = dict(zip(truth.space.parameters, values, strict=True))
        if truth.works(assignment):
            assert not any(matches_all(found.conditions, assignment) for found in atlas.confirmed), assignment


@given(arbitrary_evidence())
def test_learning_twice_gives_the_same_map_to_the_letter(evidence: tuple[SearchSpace, list[Trial]]) -> None:
    """The map is a pure function of the trials."""
    space, trials = evidence
    assert charted(trials, space) == charted([trial.model_copy(deep=True) for trial in trials], space)


@given(arbitrary_evidence())
def test_ids_of_dead_ends_are_unique(evidence: tuple[SearchSpace, list[Trial]]) -> None:
    """An id names one entry, in the mirror and on the command line."""
    space, trials = evidence
    # A threshold and the single value at which it begins are different entries with different ids.
    ids = [found.id for found in charted(trials, space).dead_ends]
    assert len(set(ids)) == len(ids)


def test_what_a_message_leaves_no_doubt_of_is_dead_at_once_and_confirmed_elsewhere() -> None:
    """Policy dead_at_once: the blamed value is ruled out everywhere, and confirmed by a failure beside other values."""
    rows = [(point(), Rung.FULL, PASSED), (point(backend="b"), Rung.FULL, failed(Reason.UNSUPPORTED_ARCH, "backend"))]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert (found.state, str(found)) == (DeadEndState.SUSPECTED, "backend = b")
    assert found.blocks(point(backend="b", draft=0, graph=0, expert=True))
    rows.append((point(backend="b", draft=0, graph=0, expert=True), Rung.FULL, rows[1][2]))
    (found,) = charted(numbered(rows), small_space()).confirmed
    assert str(found) == "backend = b"


def test_a_failure_that_may_be_flaky_is_only_suspected_until_it_repeats_elsewhere() -> None:
    """Policy confirm_once: one failure suspects, and so does its repeat; beside other values it confirms."""
    rows = [(point(), Rung.FULL, PASSED), (point(backend="b"), Rung.FULL, failed(Reason.ASSERTION, "backend"))]
    assert [found.state for found in charted(numbered(rows), small_space()).dead_ends] == [DeadEndState.SUSPECTED]
    again = charted(numbered([*rows, rows[1]]), small_space())
    assert [found.state for found in again.dead_ends] == [DeadEndState.SUSPECTED]
    elsewhere = (point(backend="b", draft=0, graph=0, expert=True), Rung.FULL, rows[1][2])
    assert [found.state for found in charted(numbered([*rows, elsewhere]), small_space()).dead_ends] == [
        DeadEndState.CONFIRMED
    ]


def test_what_failed_once_and_passed_once_is_flaky_and_blocks_nothing() -> None:
    """Flaky is not dead."""
    rows = [
        (point(backend="b"), Rung.FULL, failed(Reason.ASSERTION, "backend")),
        (point(backend="b"), Rung.FULL, PASSED),
    ]
    atlas = charted(numbered(rows), small_space())
    assert [found.state for found in atlas.dead_ends] == [DeadEndState.FLAKY]
    assert atlas.match(point(backend="b")) is None


def test_out_of_memory_rules_out_everything_that_asks_for_more() -> None:
    """A blamed monotone parameter gives a threshold, which falls as smaller values fail and never below a pass."""
    oom = failed(Reason.GPU_OOM, "graph")
    rows = [(point(graph=1), Rung.FULL, PASSED), (point(graph=8), Rung.FULL, oom), (point(graph=4), Rung.FULL, oom)]
    atlas = charted(numbered(rows), small_space())
    assert [str(found) for found in atlas.dead_ends] == ["graph ≥ 4"]
    assert atlas.match(point(graph=8)) and atlas.match(point(graph=4)) and not atlas.match(point(graph=2))


def test_a_threshold_keeps_its_id_while_it_moves() -> None:
    """Readers follow a dead end by its id."""
    oom = failed(Reason.GPU_OOM, "graph")
    rows = [(point(graph=8), Rung.FULL, oom), (point(graph=4), Rung.FULL, oom)]
    before, after = (charted(numbered(rows[:end]), small_space()).dead_ends[0].id for end in (1, 2))
    assert before == after


def test_a_pass_inside_a_dead_end_makes_it_grow_by_a_condition() -> None:
    """One passing trial splits a dead end: the value alone is innocent."""
    rows = [
        (point(backend="b", draft=3), Rung.FULL, failed(Reason.ASSERTION, "backend")),
        (point(backend="b", draft=3), Rung.FULL, failed(Reason.ASSERTION, "backend")),
        (point(backend="b", draft=1), Rung.FULL, PASSED),
    ]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert str(found) == "backend = b ∧ draft = 3"


def test_company_that_no_message_named_is_not_believed_at_once() -> None:
    """Where a pass refutes the blamed value alone, the rest is a guess: it needs a second failure."""
    rows = [
        (point(backend="b", draft=1), Rung.FULL, PASSED),
        (point(backend="b", draft=3, expert=True), Rung.FULL, failed(Reason.UNSUPPORTED_ARCH, "backend")),
    ]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert found.state is DeadEndState.SUSPECTED


def test_true_is_not_one_in_a_condition() -> None:
    """A condition on a switch says nothing about a number."""
    rows = [(point(expert=True), Rung.FULL, failed(Reason.UNSUPPORTED_ARCH, "expert"))]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert not matches_all(found.conditions, point(expert=1))


def test_a_pass_of_a_probe_does_not_refute_what_only_a_launch_shows() -> None:
    """The cheaper rung sees less: its pass is no evidence against a failure of the dearer one."""
    rows = [
        (point(backend="b"), Rung.FULL, failed(Reason.UNSUPPORTED_ARCH, "backend")),
        (point(backend="b"), Rung.PROBE, PASSED),
    ]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert (str(found), found.rung, found.contradicting) == ("backend = b", Rung.FULL, ())


def test_failures_of_the_harness_and_unknown_ones_open_no_dead_end() -> None:
    """Retry-ours, stop-study and record-only blame no parameter."""
    reasons = [Reason.BENCHMARK_ERROR, Reason.DISK_FULL, Reason.UNKNOWN]
    rows = [(point(backend="b"), Rung.FULL, failed(reason, "backend")) for reason in reasons for _ in range(2)]
    assert charted(numbered(rows), small_space()).dead_ends == ()


def test_the_scope_holds_only_the_facts_the_reason_depends_on() -> None:
    """A dead end is re-checked when one of its facts differs, and only then."""
    rows = [(point(backend="b"), Rung.FULL, failed(Reason.UNSUPPORTED_ARCH, "backend"))]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert found.scope == {"engine_version": "synthetic"}


def test_a_threshold_is_not_lowered_by_a_failure_with_another_cause() -> None:
    """Where a message also blames the backend, its value says nothing about where the other failure begins."""
    rows = [
        (point(graph=8), Rung.FULL, failed(Reason.GPU_OOM, "graph")),
        (point(graph=2, backend="b"), Rung.FULL, failed(Reason.GPU_OOM, "backend", "graph")),
    ]
    assert charted(numbered(rows), small_space()).match(point(graph=4)) is None


def test_the_order_in_which_a_message_names_the_blamed_does_not_matter() -> None:
    """The same conjunction is one entry, and both failures support it."""
    rows = [
        (point(backend="b", draft=3), Rung.FULL, failed(Reason.ASSERTION, "backend", "draft")),
        (point(backend="b", draft=3, graph=0, expert=True), Rung.FULL, failed(Reason.ASSERTION, "draft", "backend")),
    ]
    (found,) = charted(numbered(rows), small_space()).dead_ends
    assert (str(found), found.support) == ("backend = b ∧ draft = 3", ("#0", "#1"))


def test_failures_that_name_no_parameter_rule_out_next_to_nothing_that_works() -> None:
    """Two causes that share a value must not condemn the value: without blames, a dead end keeps what never varied."""
    space = small_space()
    points = [dict(zip(space.parameters, point, strict=True)) for point in itertools.product(*_domains(space))]
    shares = []
    for seed in range(48):
        generator = random.Random(seed)
        causes = (_random_pair(space, generator), _random_pair(space, generator))
        truth = Truth(space, tuple(Planted(cause, Reason.COLLECTIVE_ERROR, has_blames=False) for cause in causes))
        study = SimulatedStudy(truth, 30, seed=seed)
        study.run()
        atlas = study.history().atlas
        working = [point for point in points if truth.outcome(point, Rung.FULL).failure is None]
        shares.append(sum(atlas.match(point) is not None for point in working) / len(working))
    assert statistics.fmean(shares) <= 0.01, shares


def _random_pair(space: SearchSpace, generator: random.Random) -> tuple[Condition, ...]:
    names = generator.sample(list(space.parameters), 2)
    return tuple(Condition(parameter=name, value=generator.choice(space.parameters[name].domain)) for name in names)


def _domains(space: SearchSpace) -> list[tuple[Scalar, ...]]:
    return [parameter.domain for parameter in space.parameters.values()]
