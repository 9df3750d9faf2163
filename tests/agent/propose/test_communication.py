"""What probes say of the communication time, and of which verify pass they say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.propose.communication import Communication
from agent.propose.memo import Memo
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, load_node
from tests.support.modelled_study import ModelledStudy


def probed(study: ModelledStudy, point: Assignment) -> None:
    """Run the probe of an assignment."""
    study.launch(Work(kind=Kind.PROBE, rung=Rung.PROBE, requested=point, resolved=point))


def test_a_probe_without_speculation_says_nothing_of_the_verify_pass() -> None:
    """It communicates one token instead of several; the same collectives would look several times faster."""
    study = ModelledStudy(node=load_node("pcie8-blackwell-cuda128"), budget=40)
    base = study.history().default
    for kind in (Kind.DEFAULT, Kind.BASELINE):
        point = base if kind is Kind.DEFAULT else study.history().without_speculation(base)
        study.launch(Work(kind=kind, rung=Rung.FULL, requested=point, resolved=point))
    eager = {**base, "cuda_graph_max_bs": 0}
    probed(study, base)
    probed(study, eager)
    [before] = Communication(study.history()).times([eager])
    probed(study, study.history().without_speculation(eager))
    last = study.probes[-1].outcome
    assert last is not None and last.value is not None and last.value < before / 2
    assert Communication(study.history()).times([eager]) == [pytest.approx(before)]


def test_a_probe_that_is_closed_after_a_later_one_counts_each_once() -> None:
    """What is kept from proposal to proposal says the same as what a fresh agent reads, with probes in flight too."""
    study = ModelledStudy(node=load_node("pcie8-blackwell-cuda128"), budget=40)
    base = study.history().default
    study.launch(Work(kind=Kind.DEFAULT, rung=Rung.FULL, requested=base, resolved=base))
    for size in (8, 16, 32):
        probed(study, {**base, "cuda_graph_max_bs": size})
    history = study.history()
    first, second, third = history.probes
    in_flight = second.model_copy(update={"outcome": None, "record": None, "closed_at": None})
    memo, asked = Memo(), [{**base, "allreduce": value} for value in history.space.parameters["allreduce"].domain]
    for probes in ((first, in_flight, third), (first, in_flight, third), history.probes):
        kept = replace(history, probes=probes, memo=memo)
        fresh = replace(history, probes=probes, memo=Memo())
        assert Communication(kept).times(asked) == Communication(fresh).times(asked)
