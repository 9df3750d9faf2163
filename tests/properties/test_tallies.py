"""What is added up as trials come is what a look at all trials gives, at every proposal of a study.

The oracles look at every trial, as if nothing were kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.deadends.claims import reaches, visible_at
from agent.deadends.dead_end import DeadEndState
from agent.deadends.observation import trial_label
from agent.deadends.signature import signature_of
from agent.propose import improve, second_launch, tallies, working
from agent.propose.communication import Communication
from agent.propose.drafting import Drafting
from agent.propose.history import History
from agent.propose.memo import Memo
from agent.propose.model_based import Sampler
from agent.propose.order import Proposal, propose
from agent.propose.parts import PARTS
from agent.propose.rung_memory import RungMemory
from agent.reasons import TWICE
from agent.store.trial import Kind, Trial
from runners import Rung
from search_spaces.node_generator import generate
from tests.support.modelled_study import ModelledStudy
from tests.support.planted import Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import planted_studies

BELOW = (Rung.RESOLVE, Rung.PROBE, Rung.DUMMY)


def everything(history: History) -> list[Trial]:
    """Return all trials: launches, probes, checks."""
    return [*history.trials, *history.probes, *history.checks]


def may_count(trial: Trial) -> bool:
    """Return whether a trial counts or is in flight."""
    return trial.counts or not trial.is_closed


def the_experiments_are_counted(history: History) -> None:
    """Stages, looks, endings, and what was run about a dead end."""
    trials = everything(history)
    stages = Counter(trial.work.stage for trial in trials if trial.work.about and may_count(trial))
    assert tallies.stages(history) == stages
    look_of = tallies.looks(history)
    for trial in trials:
        failure = trial.outcome.failure if trial.counts and trial.outcome else None
        assert look_of(trial_label(trial)) == (signature_of(failure) if failure else None)
    failures = [(each.work.stage, each.outcome.failure) for each in trials if each.outcome and each.outcome.failure]
    assert tallies.endings(history) == Counter((stage, failure.reason) for stage, failure in failures)
    for about in {trial.work.about for trial in history.probes} - {""}:
        mine = [probe for probe in history.probes if probe.work.about == about and may_count(probe)]
        assert tallies.probes_about(history, about) == mine
    for found in history.atlas.dead_ends:
        support = [each for each in (*history.trials, *history.probes) if trial_label(each) in found.support]
        assert tallies.of_labels(history, found.support) == support


def the_rungs_are_counted(history: History) -> None:
    """How many trials a rung had, how long they took, and what each of them said."""
    trials = [*history.probes, *history.checks]
    for rung in BELOW:
        there = [trial for trial in trials if trial.work.rung is rung]
        seconds = [each.record.wall_s for each in there if each.counts and not each.is_not_probed and each.record]
        assert tallies.durations(history, rung) == sorted(seconds)
        assert tallies.num_checks(history, rung) == sum(map(may_count, there))
        assert history.memory.is_trusted(rung) == any(trial.is_measured for trial in there)
        for trial in there:
            fresh = RungMemory(history.space, history.probes, history.checks, history.atlas)
            for point in (trial.work.requested, trial.work.resolved):
                assert history.memory.was_asked(rung, point) == fresh.was_asked(rung, point)
                assert history.memory.failed(rung, point) == fresh.failed(rung, point)
                assert history.memory.resolved(point) == fresh.resolved(point)
    names = history.space.probe_parameters
    seen = {tuple(repr(each.work.resolved[name]) for name in names) for each in history.probes if each.counts}
    assert tallies.probed_points(history) == seen
    assert tallies.num_not_probed(history) == sum(probe.is_not_probed for probe in history.probes)


def what_works_is_known(history: History) -> None:
    """Values, pairs and assignments that worked at a rung or above it."""
    for rung in BELOW:
        works = [t for t in everything(history) if t.works and reaches(t.work.rung, rung)]
        assert history.working_at(rung) == {trial.work.key: trial.work.resolved for trial in works}
        names = visible_at(rung, history.space)
        listed = [[(name, repr(trial.work.resolved[name])) for name in names] for trial in works]
        assert working.working_values(history, rung, names) == {value for each in listed for value in each}
        assert working.working_pairs(history, rung, names) == {
            pair for each in listed for pair in combinations(each, 2)
        }
    measured = [trial for trial in history.trials if trial.is_measured]
    assert tallies.first_that_works(history) == next(iter(measured), None)


def what_runs_and_what_may_run_again_is_known(history: History) -> None:
    """Open trials, identities, and failures that may be launched a second time."""
    parts = (history.trials, history.probes, history.checks)
    assert tallies.open_trials(history) == [[each for each in part if not each.is_closed] for part in parts]
    assert history.probed == {each.work.identity for each in history.probes if may_count(each)}
    checked = [each.work for each in history.checks if may_count(each)]
    assert history.checked == {name for work in checked for name in (work.identity, work.asked_identity)}
    for name, part in zip(PARTS, parts, strict=True):
        failed = [(each, each.outcome.failure) for each in part if each.is_failed and each.outcome]
        again = [each for each, why in failed if why and why.policy in TWICE and each.work.kind is not Kind.CONFIRM]
        assert tallies.twice(history, name) == again
    of_default = [each for each in history.trials if each.counts and each.work.requested == history.default]
    assert tallies.of_default(history) == of_default
    settled = {
        label
        for found in history.atlas.dead_ends
        for label in found.support
        if found.state is not DeadEndState.SUSPECTED
    }
    assert not settled & {trial_label(trial) for trial in second_launch.open_failures(history).values()}


def the_models_know_the_same(history: History) -> None:
    """Draft lengths and communication times, as a study that is read for the first time has them."""
    fresh = replace(history, memo=Memo())
    points = [trial.work.resolved for trial in history.launches]
    assert Communication(history).effects(points) == Communication(fresh).effects(points)
    assert Drafting(history).effects(points) == Drafting(fresh).effects(points)
    plain = {}
    for key, point in history.measured.items():
        plain[key] = history.space.normalise({**point, **history.space.baseline}, history.facts)
    passes = Drafting(history)._passes
    for key, other in Drafting(history)._pairs:
        assert [k for k in passes if history.measured[k] == plain[key]] == [other]


CHECKS = (
    the_experiments_are_counted,
    the_rungs_are_counted,
    what_works_is_known,
    what_runs_and_what_may_run_again_is_known,
    the_models_know_the_same,
)


def checked(checks: tuple[Callable[[History], None], ...]) -> Callable[[History, Proposal], None]:
    """Return what looks at a study at each proposal, and proposes once more with nothing kept."""

    def look(history: History, proposal: Proposal) -> None:
        for check in checks:
            check(history)
        if proposal is not None:
            kept = replace(history, refusals=[], ruled_out=Counter())
            fresh = replace(kept, memo=Memo(), refusals=[], ruled_out=Counter())
            assert [propose(each, Sampler(history.space)) for each in (kept, fresh)] == [proposal, proposal]
            assert (kept.refusals, kept.ruled_out) == (fresh.refusals, fresh.ruled_out)

    return look


@settings(max_examples=10)
@given(planted_studies(), st.integers(1, 4), st.integers(0, 100))
def test_what_is_added_up_is_what_all_trials_say(truth: Truth, slots: int, seed: int) -> None:
    SimulatedStudy(truth, budget=14, slots=slots, seed=seed, on_proposal=checked(CHECKS)).run()


@settings(max_examples=3)
@given(st.integers(0, 400), st.integers(1, 4))
def test_on_modelled_nodes_with_all_rungs_too(node: int, slots: int) -> None:
    """Engines that replace values, draft lengths, flaky failures and checks at every rung."""
    ModelledStudy(node=generate(node), budget=20, slots=slots, on_proposal=checked(CHECKS)).run()


def the_latest_that_worked_are_bounded(history: History) -> None:
    """Experiments are made of so many assignments at most, and all of these worked."""
    for rung in Rung:
        latest, whole = working.latest_working_at(history, rung), history.working_at(rung)
        assert len(latest) <= LONG[working, "MOST_WORKING"] and latest.items() <= whole.items()
        assert bool(latest) == bool(whole)


LONG = {(working, "MOST_WORKING"): 4, (working, "STEPS"): 2, (improve, "BEST_ROWS"): 3, (improve, "LATEST_ROWS"): 3}
"""Bounds that only matter in a long study, so low that they do in a short one."""


@settings(max_examples=3)
@given(st.integers(0, 400), st.integers(1, 4))
def test_within_the_bounds_of_a_long_study_too(node: int, slots: int) -> None:
    """Nothing hangs on what was kept on the way, where only a part of the study is looked at."""
    with ExitStack() as stack:
        for (module, name), bound in LONG.items():
            stack.enter_context(mock.patch.object(module, name, bound))
        look = checked((*CHECKS, the_latest_that_worked_are_bounded))
        ModelledStudy(node=generate(node), budget=20, slots=slots, on_proposal=look).run()
