"""Experiments that are not looked for, since chance is nearly certain, would have told too little."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.propose.expectation import Expectation, most_told
from agent.propose.experiment_points import candidates
from agent.propose.history import History
from agent.propose.order import Proposal
from search_spaces.node_generator import generate
from tests.support.modelled_study import ModelledStudy
from tests.support.planted import Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.strategies import planted_studies

MOST_POINTS = 40


def unlikely(history: History, share: float) -> History:
    """Return the study as if chance had made all but this share of what is suspected."""
    less = [
        replace(each, explanations=tuple(replace(why, share=share * why.share) for why in each.explanations))
        for each in history.atlas.suspicions
    ]
    return replace(history, atlas=replace(history.atlas, suspicions=tuple(less)))


def no_experiment_tells_more(history: History, _: Proposal) -> None:
    """What an experiment is worth stays below what is said beforehand."""
    for study in (history, unlikely(history, 0.015), unlikely(history, 0.001)):
        expectation = Expectation(study)
        for suspicion in study.atlas.suspicions:
            for point in islice(candidates(study, suspicion, suspicion.failed.seen.rung), MOST_POINTS):
                normal = study.space.normalise(point, study.facts)
                assert expectation.worth(suspicion, normal, 0) <= most_told(suspicion) + 1e-12


@settings(max_examples=10)
@given(planted_studies(), st.integers(0, 100))
def test_no_experiment_tells_more_than_the_shares_allow(truth: Truth, seed: int) -> None:
    SimulatedStudy(truth, budget=14, seed=seed, on_proposal=no_experiment_tells_more).run()


@settings(max_examples=3)
@given(st.integers(0, 400))
def test_on_modelled_nodes_too(node: int) -> None:
    """Flaky failures among them."""
    ModelledStudy(node=generate(node), budget=20, on_proposal=no_experiment_tells_more).run()
