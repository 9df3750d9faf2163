"""Properties of promotion: nothing is launched above a rung that failed, and no identity runs twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.reasons import Reason
from agent.store.trial import Kind, Trial
from runners import Rung
from search_spaces import Comparison, Condition
from tests.support.laddered import ORDER, LadderedStudy, LadderedTruth
from tests.support.planted import Planted, small_space

BUDGET = 8
REASONS = (Reason.CONFIG_INVALID, Reason.UNSUPPORTED_ARCH, Reason.MISSING_DEPENDENCY)
"""Reasons that every rung of these claims to find, and that always repeat."""


def equal(parameter: str, value: object) -> Condition:
    """Return the condition that a parameter has a value."""
    return Condition(parameter=parameter, comparison=Comparison.EQUAL, value=value)  # type: ignore[arg-type]


@st.composite
def truths(draw: st.DrawFn) -> LadderedTruth:
    """Up to four failures of values that the default does not have, each from some rung on."""
    space = small_space()
    default = space.default_on({})
    choices = [
        (name, value) for name, each in space.parameters.items() for value in each.domain if value != default[name]
    ]
    picked = draw(st.lists(st.sampled_from(choices), max_size=4, unique=True))
    planted = tuple(Planted((equal(name, value),), draw(st.sampled_from(REASONS))) for name, value in picked)
    lowest = tuple(draw(st.sampled_from([Rung.RESOLVE, Rung.DUMMY, Rung.FULL])) for _ in planted)
    return LadderedTruth(space, planted, lowest)


def in_order(study: LadderedStudy) -> list[Trial]:
    """Return all trials by when they began."""
    return sorted((*study.trials, *study.probes), key=lambda trial: trial.started_at)


@settings(max_examples=6, deadline=None)
@given(truths(), st.integers(0, 3), st.sampled_from([1, 2]))
def test_nothing_is_launched_above_a_rung_that_failed(truth: LadderedTruth, seed: int, slots: int) -> None:
    """Nor is anything run twice, and cheap rungs use up no budget."""
    study = LadderedStudy(truth, BUDGET, seed, slots)
    study.run()
    closed: set[tuple[str, Rung]] = set()
    for trial in in_order(study):
        rung = trial.work.rung
        below = [lower for lower in ORDER[: ORDER.index(rung)] if (trial.work.key, lower) in closed]
        assert below == [], f"{trial.work.key} ran at {rung} after it failed at {below}"
        if trial.is_failed and rung in (Rung.RESOLVE, Rung.DUMMY):
            closed.add((trial.work.key, rung))
    identities = Counter(work.identity for work in study.works)
    assert [name for name, number in identities.items() if number > 1] == []
    assert len(study.trials) <= BUDGET
    assert {trial.work.kind for trial in study.probes} <= {Kind.PROBE}


@settings(max_examples=4, deadline=None)
@given(truths(), st.integers(0, 3))
def test_everything_that_is_launched_was_resolved_first(truth: LadderedTruth, seed: int) -> None:
    """The cheapest rung is climbed by all; a pass is remembered and not asked for again."""
    study = LadderedStudy(truth, BUDGET, seed)
    study.run()
    resolved = [trial.work.key for trial in study.probes if trial.work.rung is Rung.RESOLVE]
    assert len(set(resolved)) == len(resolved)
    assert {trial.work.key for trial in study.trials} <= set(resolved)


@settings(max_examples=4, deadline=None)
@given(truths(), st.integers(0, 3), st.integers(1, 40))
def test_a_resumed_study_climbs_as_an_uninterrupted_one(truth: LadderedTruth, seed: int, steps: int) -> None:
    whole = LadderedStudy(truth, BUDGET, seed)
    whole.run()
    study = LadderedStudy(truth, BUDGET, seed)
    if study.run(steps=steps) is None:
        study = study.resumed()  # type: ignore[assignment]
        study.run()
    assert [work.identity for work in study.works] == [work.identity for work in whole.works]
