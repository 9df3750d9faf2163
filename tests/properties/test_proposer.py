"""What the proposer promises, for studies driven to their end over planted truths."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.outcome import Outcome, OutcomeKind
from agent.propose import base, model_based, second_launch
from agent.propose.collectives import MOST_LOST
from agent.propose.history import ATTEMPTS, History
from agent.propose.memo import Memo
from agent.propose.model_based import Sampler
from agent.propose.order import Launches, Proposal, propose
from agent.propose.standing import Standing
from agent.reasons import Reason
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, load_space
from search_spaces.condition import Condition
from tests.support.planted import Planted, Truth, small_space
from tests.support.simulated_study import SimulatedStudy, full_launches
from tests.support.strategies import numbered, planted_studies

SPACE = small_space()
DEFAULT = SPACE.default_on({})
ALL_WORKS = Truth(SPACE)


def where(**values: object) -> tuple[Condition, ...]:
    """Return the conjunction of these values."""
    return tuple(Condition(parameter=name, value=value) for name, value in values.items())  # type: ignore[arg-type]


def shape(work: Work) -> tuple[str, str]:
    """Return what identifies a piece of work to a reader: why it runs, and its identity."""
    return work.kind.value, work.identity


@settings(max_examples=15)
@given(planted_studies(), st.integers(0, 3), st.sampled_from([9, 24]), st.sampled_from([1, 4]))
def test_a_fresh_sampler_proposes_what_a_kept_one_does(truth: Truth, seed: int, budget: int, slots: int) -> None:
    """The proposer is a pure function of the history: the sampler object is only a cache."""

    def check(history: History, proposal: Proposal) -> None:
        if proposal is not None:
            again = replace(history, memo=Memo())  # nothing that was worked out is carried over
            assert propose(again, Sampler(truth.space)) == proposal

    SimulatedStudy(truth, budget, seed=seed, slots=slots, on_proposal=check).run()


@settings(max_examples=20)
@given(planted_studies(), st.integers(0, 3), st.integers(1, 60))
def test_a_study_resumed_at_any_step_proposes_what_an_undisturbed_one_does(truth: Truth, seed: int, cut: int) -> None:
    """What was in flight is launched again, and nothing else changes."""
    undisturbed = SimulatedStudy(truth, 20, seed=seed)
    undisturbed.run()
    killed = SimulatedStudy(truth, 20, seed=seed)
    killed.run(steps=cut)
    resumed = killed.resumed()
    resumed.run()
    assert [shape(work) for work in resumed.works] == [shape(work) for work in undisturbed.works]


@settings(max_examples=15)
@given(planted_studies(), st.lists(st.integers(1, 8), min_size=3, max_size=12))
def test_a_study_killed_again_and_again_proposes_what_an_undisturbed_one_does(truth: Truth, cuts: list[int]) -> None:
    """Kills of the agent are no fault of the work: they neither use up its attempts nor change what comes next."""
    undisturbed = SimulatedStudy(truth, 14)
    undisturbed.run()
    study = SimulatedStudy(truth, 14)
    for cut in cuts:
        if study.run(steps=cut) is not None:
            break
        study = study.resumed()
    study.run()
    assert [shape(work) for work in study.works] == [shape(work) for work in undisturbed.works]


@settings(max_examples=20)
@given(planted_studies(), st.integers(1, 30), st.integers(1, 3))
def test_no_identity_is_closed_twice_and_the_budget_is_kept(truth: Truth, budget: int, slots: int) -> None:
    """The invariant of the store, also with several launches in flight: every launch is a new piece of work."""
    study = SimulatedStudy(truth, budget, slots=slots)
    most = 0

    def check(history: History, _: Proposal) -> None:
        nonlocal most
        most = max(most, history.spent)

    study.on_proposal = check
    stop = study.run()
    assert stop is not None
    counts = Counter((work.rung, work.identity) for work in study.works)
    assert [identity for identity, count in counts.items() if count > 1] == []
    assert most <= budget
    if any(trial.is_measured for trial in study.trials):
        assert len(full_launches(study)) == budget


@settings(max_examples=20)
@given(planted_studies(), st.integers(0, 3))
def test_nothing_confirmed_dead_is_launched(truth: Truth, seed: int) -> None:
    """A confirmed dead end blocks wherever it matches, second launches included; only its own audits look into it."""

    def check(history: History, proposal: Proposal) -> None:
        for work in proposal.works if isinstance(proposal, Launches) else ():
            matching = [found for found in history.atlas.confirmed if found.blocks(work.resolved)]
            assert all(work.kind is Kind.PROBE and work.about == found.id for found in matching)

    SimulatedStudy(truth, 24, seed=seed, on_proposal=check).run()


@settings(max_examples=15)
@given(planted_studies())
def test_the_default_comes_first_then_the_baseline_and_repeats_last(truth: Truth) -> None:
    """The order of search: a base, the baseline, …, and the last share of the budget for repeats."""
    budget = 25
    study = SimulatedStudy(truth, budget)
    study.run()
    works = full_launches(study)
    assert works[0].resolved == DEFAULT
    measured = [trial for trial in study.trials if trial.is_measured]
    if not measured:
        return
    first = next(index for index, trial in enumerate(study.trials) if trial.is_measured)
    baseline = {**study.trials[first].work.resolved, "draft": 0}
    if study.trials[first].work.resolved != baseline and truth.works(baseline):  # one known to be dead is not launched
        assert study.trials[first + 1].work.kind is Kind.BASELINE
        assert study.trials[first + 1].work.resolved == baseline
    assert sum(work.key == study.history().baseline_key for work in works) != 1 or study.history().baseline_key is None


@pytest.mark.parametrize("budget", [5, 10, 25, 40])
def test_where_everything_works_the_last_fifth_repeats_what_is_not_told_apart(budget: int) -> None:
    """One launch crowns the luckiest: the best and the baseline are launched again, and rivals within the noise."""
    study = SimulatedStudy(ALL_WORKS, budget)
    study.run()
    works = full_launches(study)
    history = study.history()
    repeats = [work for work in works if work.kind is Kind.REPEAT]
    early = [work for work in works[: -(budget // 5)] if work.kind is Kind.REPEAT]
    assert repeats and {work.key for work in early} <= {history.baseline_key} and len(early) <= 2
    if budget >= 10:
        launches = Counter(work.key for work in works)
        declared = Standing(history).winner
        assert declared is not None and launches[declared] >= 2
        assert launches[history.baseline_key] >= 2


def test_where_nothing_works_the_study_stops_with_the_reasons() -> None:
    """Every rung of the ladder is tried, then a few assignments that the causes left open speak for, and no more."""
    truth = Truth(
        SPACE, tuple(Planted(where(expert=value), Reason.MISSING_DEPENDENCY, False) for value in (False, True))
    )
    study = SimulatedStudy(truth, 40)
    stop = study.run()
    assert stop is not None and stop.nothing_works and not stop.resumable
    assert "missing_dependency" in stop.why
    assert len(study.trials) <= 1 + len(SPACE.fallbacks) + base.BY_CAUSE


def test_where_the_default_dies_the_first_safer_setting_that_works_is_the_base() -> None:
    """The ladder adds one safer setting after the other."""
    truth = Truth(
        SPACE, (Planted(where(graph=4), Reason.CUDA_GRAPH_INCOMPATIBLE), Planted(where(graph=1), Reason.ASSERTION))
    )
    study = SimulatedStudy(truth, 20)
    study.run()
    assert study.history().base == {**DEFAULT, "graph": 0}


def test_where_the_harness_spoils_the_default_the_first_safer_setting_is_the_base() -> None:
    """The default is given up after three attempts, and the search goes on without it."""

    def judge(trial: Trial, _: int) -> Outcome:
        is_default = trial.work.resolved == DEFAULT
        return interrupted() if is_default else ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)

    study = SimulatedStudy(ALL_WORKS, 10, judge=judge)
    study.run()
    assert study.history().base == {**DEFAULT, "graph": 1}
    assert len(full_launches(study)) == 10


def test_the_base_stays_the_same_once_it_is_found() -> None:
    """Every effect is measured from it: not even the baseline, launched next, takes its place."""
    bases = []
    wanted: Assignment = {**DEFAULT, "backend": "c"}
    truth = Truth(SPACE, (Planted(where(graph=4, backend="a"), Reason.CUDA_GRAPH_INCOMPATIBLE),))
    SimulatedStudy(truth, 10, asked=(wanted,), on_proposal=lambda history, _: bases.append(history.base)).run()
    assert [base for base in bases if base is not None] == [wanted] * sum(base is not None for base in bases)
    assert wanted in bases


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_no_safer_setting_is_launched_while_the_default_may_still_work(slots: int) -> None:
    """A second slot does not spend budget on a ladder that is not needed."""
    study = SimulatedStudy(ALL_WORKS, 10, slots=slots)
    study.run()
    assert [work.kind for work in full_launches(study)[:2]] == [Kind.DEFAULT, Kind.BASELINE]
    assert sum(work.kind is Kind.DEFAULT for work in full_launches(study)) == 1


@pytest.mark.parametrize(("budget", "kinds"), [(1, "D"), (2, "DB"), (3, "DBS"), (5, "DBSSR")])
def test_a_small_budget_does_the_most_important_first(budget: int, kinds: str) -> None:
    """Steps are cut from the end: the default and the baseline are never missing."""
    study = SimulatedStudy(ALL_WORKS, budget)
    study.run()
    found = "".join(work.kind.value[0].upper() for work in full_launches(study))
    assert found == kinds


@settings(max_examples=15)
@given(planted_studies(), st.sampled_from(["b", "c", "d"]), st.sampled_from([0, 1, 3]))
def test_pins_and_excludes_hold_for_every_launch_and_probe(truth: Truth, pin: str, exclude: int) -> None:
    """What the user ruled out is never launched, by no step of the search."""
    space = SPACE.narrowed({"backend": pin}, {"draft": (exclude,)})
    study = SimulatedStudy(Truth(space, truth.planted), 20)
    study.run()
    assert {work.resolved["backend"] for work in study.works} <= {pin}
    assert exclude not in {work.resolved["draft"] for work in study.works}


def interrupted(reason: Reason = Reason.BENCHMARK_ERROR) -> Outcome:
    """Return an outcome that the harness is to blame for."""
    return Outcome(kind=OutcomeKind.INTERRUPTED, failure=Planted((), reason).failure)


def test_work_that_the_harness_spoils_is_queued_again_three_times_at_most() -> None:
    """Retry ours: then it is given up, costs nothing, and the study goes on."""
    spoiled = {**DEFAULT, "draft": 0}

    def judge(trial: Trial, _: int) -> Outcome:
        return (
            interrupted() if trial.work.resolved == spoiled else ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)
        )

    study = SimulatedStudy(ALL_WORKS, 12, judge=judge)
    stop = study.run()
    assert stop is not None and not stop.resumable
    assert sum(trial.work.resolved == spoiled for trial in study.trials) == ATTEMPTS
    assert len(full_launches(study)) == 12


def test_repeats_that_the_harness_spoils_are_given_up_too() -> None:
    """A contender whose repeat never comes to an end does not keep the study from ending."""

    def judge(trial: Trial, _: int) -> Outcome:
        is_spoiled = trial.work.kind is Kind.REPEAT and trial.work.resolved == {**DEFAULT, "draft": 0}
        return interrupted() if is_spoiled else ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)

    study = SimulatedStudy(ALL_WORKS, 20, judge=judge)
    study.run()
    assert max(Counter(trial.work.identity for trial in study.trials).values()) <= ATTEMPTS
    assert len(full_launches(study)) == 20


def test_probes_without_an_answer_are_not_asked_for_ever() -> None:
    """A probes' server that dies each time costs a few batches; the launches go on without it."""

    def judge(trial: Trial, _: int) -> Outcome:
        is_lost = trial.work.rung is Rung.PROBE
        return interrupted() if is_lost else ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)

    study = SimulatedStudy(ALL_WORKS, 12, judge=judge)
    study.run()
    asked = Counter(probe.work.identity for probe in study.probes)
    assert 0 < len(study.probes) <= MOST_LOST
    assert max(asked.values()) <= ATTEMPTS
    assert len(full_launches(study)) == 12


def test_a_harness_that_fails_every_time_stops_the_study() -> None:
    """Launching for ever what cannot be launched helps nobody."""
    study = SimulatedStudy(ALL_WORKS, 12, judge=lambda trial, before: interrupted())
    stop = study.run()
    assert stop is not None and stop.resumable
    assert full_launches(study) == []


def test_a_flaky_failure_may_be_launched_once_more_and_never_becomes_a_dead_end() -> None:
    """What fails once and passes the second time is no dead end, and is not launched a third time."""
    flaky = {**DEFAULT, "expert": True}
    failure = Planted(where(expert=True), Reason.SERVER_HANG, has_blames=False).failure

    def judge(trial: Trial, _: int) -> Outcome:
        if trial.work.resolved == flaky and trial.work.kind not in (Kind.CONFIRM, Kind.PROBE, Kind.REPEAT):
            return Outcome(kind=OutcomeKind.FAILED, failure=failure)
        return ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)

    study = SimulatedStudy(ALL_WORKS, 25, judge=judge, asked=(flaky,))
    study.run()
    launches = [work.kind for work in full_launches(study) if work.resolved == flaky]
    assert launches.count(Kind.CONFIRM) <= 1
    assert not study.history().atlas.confirmed


def test_a_failure_that_repeats_is_confirmed_beside_other_values_and_then_never_launched_again() -> None:
    """Confirm, then dead: what failed is known to fail, whatever the other values."""
    truth = Truth(SPACE, (Planted(where(expert=True), Reason.ASSERTION),))
    study = SimulatedStudy(truth, 25)
    study.run()
    (found,) = study.history().atlas.confirmed
    assert str(found) == "expert = true"
    later = [work.kind for work in full_launches(study) if work.resolved["expert"] is True][1:]
    assert set(later) <= {Kind.CONFIRM, Kind.SEARCH} and 1 <= len(later) <= 3


def test_second_launches_stay_within_their_share() -> None:
    """A node on which nearly everything fails must not spend itself on second launches."""
    flaky = Planted((), Reason.UNKNOWN, False).failure

    def judge(trial: Trial, _: int) -> Outcome:
        if trial.work.resolved in (DEFAULT, {**DEFAULT, "draft": 0}):
            return ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)
        return Outcome(kind=OutcomeKind.FAILED, failure=flaky)

    study = SimulatedStudy(ALL_WORKS, 30, judge=judge)
    study.run()
    assert 0 < sum(work.kind is Kind.CONFIRM for work in full_launches(study)) <= 6


@settings(max_examples=15)
@given(planted_studies(), st.integers(2, 3))
def test_with_several_slots_nothing_is_in_flight_twice(truth: Truth, slots: int) -> None:
    """Two slots never measure the same thing, and the study still ends."""

    def check(history: History, _: Proposal) -> None:
        open_ones = [trial.work.key for trial in history.trials if not trial.is_closed]
        open_probes = [trial.work.identity for trial in history.probes if not trial.is_closed]
        assert len(set(open_ones)) == len(open_ones) and len(set(open_probes)) == len(open_probes)

    assert SimulatedStudy(truth, 20, slots=slots, on_proposal=check).run() is not None


def test_a_full_disk_stops_the_study_and_a_resumed_one_goes_on() -> None:
    """Stop-study failures blame no parameter: after a resume the same work runs again, within the same budget."""
    study = SimulatedStudy(
        ALL_WORKS,
        10,
        judge=lambda trial, _: (
            interrupted(Reason.DISK_FULL)
            if trial.number == 1 and trial.work.kind is not Kind.PROBE
            else ALL_WORKS.outcome(trial.work.resolved, trial.work.rung)
        ),
    )
    stop = study.run()
    assert stop is not None and stop.resumable and "disk_full" in stop.why
    resumed = study.resumed()
    stop = resumed.run()
    assert stop is not None and not stop.resumable
    undisturbed = SimulatedStudy(ALL_WORKS, 10)
    undisturbed.run()
    assert [shape(work) for work in resumed.works] == [shape(work) for work in undisturbed.works]


def test_what_the_user_asked_for_is_launched_before_anything_else() -> None:
    """`agent try`: the next launch is exactly this one."""
    wanted: Assignment = {**DEFAULT, "backend": "c", "draft": 3}
    study = SimulatedStudy(ALL_WORKS, 10, asked=(wanted,))
    study.run()
    assert full_launches(study)[0].resolved == wanted
    assert full_launches(study)[1].kind is Kind.DEFAULT


def test_asking_for_the_default_does_not_hide_that_it_works() -> None:
    """The default may have been launched as the user's own wish: it is the base all the same."""
    study = SimulatedStudy(Truth(SPACE.model_copy(update={"fallbacks": ()})), 10, asked=(DEFAULT,))
    stop = study.run()
    assert stop is not None and not stop.nothing_works
    assert study.history().base == DEFAULT


@settings(max_examples=10)
@given(planted_studies())
def test_probes_stay_within_their_share(truth: Truth) -> None:
    """A fifth of the node time at the price of a probe, and no probe at all where the engine has none."""
    study = SimulatedStudy(truth, 20)
    study.run()
    assert sum(probe.work.repeat == 0 for probe in study.probes) <= 0.2 * 20 / 0.1 + 8


def test_in_a_long_study_too_a_fresh_sampler_proposes_what_a_kept_one_does() -> None:
    """Beyond some hundred rows the model is fitted to the best and the latest ones, by the history alone."""
    space, generator = load_space("torch"), random.Random(0)
    points = [{name: generator.choice(each.domain) for name, each in space.parameters.items()} for _ in range(420)]
    truth = Truth(space)
    points = [space.default_on({}), *(space.normalise(point, {"device": "cuda"}) for point in points)]
    trials = numbered([(point, Rung.FULL, truth.outcome(point, Rung.FULL)) for point in points])
    kept = Sampler(space)
    for end in (200, 330, 360, 421):
        study = SimulatedStudy(truth, 2000, trials=trials[:end])
        history = replace(study.history(), facts={"device": "cuda"})
        proposed = model_based.propose(history, kept)
        assert proposed is not None
        assert proposed == model_based.propose(replace(history), Sampler(space))


def test_a_failure_inside_a_confirmed_dead_end_gets_no_second_launch() -> None:
    """Whether it was flaky no longer matters: the assignment is dead for another reason.

    The failure names no parameter: one that does is asked about elsewhere, where the answer tells more.
    """
    nameless = Planted(where(expert=True), Reason.ASSERTION).failure.model_copy(update={"blames": ()})
    open_failure = Outcome(kind=OutcomeKind.FAILED, failure=nameless)
    certain = Outcome(kind=OutcomeKind.FAILED, failure=Planted(where(backend="b"), Reason.UNSUPPORTED_ARCH).failure)
    elsewhere = {**DEFAULT, "backend": "b", "draft": 0, "graph": 0}
    rows = [
        (DEFAULT, Rung.FULL, Outcome(kind=OutcomeKind.MEASURED, value=1.0)),
        ({**DEFAULT, "backend": "b", "expert": True}, Rung.FULL, open_failure),
        ({**DEFAULT, "backend": "b"}, Rung.FULL, certain),
        (elsewhere, Rung.FULL, certain),
        ({**elsewhere, "expert": True}, Rung.FULL, certain),
    ]
    before, after = (SimulatedStudy(ALL_WORKS, 20, trials=numbered(rows[:end])).history() for end in (2, 5))
    assert second_launch.propose(before) is not None
    assert second_launch.propose(after) is None
