"""The story's campaign on its modelled node: five dead ends found unaided, and what an upgrade makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest

from agent.deadends.dead_end import DeadEnd, DeadEndState, EscapeState
from agent.deadends.inheritance import Ancestor, inherit
from agent.reasons import Reason
from runners import Rung
from search_spaces import NodeModel, load_node
from search_spaces.condition import matches_all
from tests.support.modelled_study import ModelledStudy

BUDGET = 40
TREE = {"nccl_algo": "Tree"}
FUSION = {"allreduce": "flashinfer_fusion_trtllm"}
SYMMETRIC = {"allreduce": "torch_symm_mem"}
ALL_TO_ALL = {"moe_a2a_backend": "flashinfer", "ep_size": 8}
DEEP_EP = {"moe_a2a_backend": "deepep", "ep_size": 8}


@dataclass(frozen=True)
class Campaign:
    """A study of a modelled node, driven to its end."""

    node: NodeModel
    inherited: tuple[DeadEnd, ...] = ()

    @cached_property
    def study(self) -> ModelledStudy:
        """The study with its budget spent."""
        study = ModelledStudy(budget=BUDGET, node=self.node, inherited=self.inherited)
        study.run()
        return study

    @cached_property
    def dead_ends(self) -> tuple[DeadEnd, ...]:
        """Its map."""
        return self.study.history().atlas.dead_ends

    def about(self, **values: object) -> list[DeadEnd]:
        """Return the dead ends whose conditions these values meet, and speak of nothing else."""
        return [
            found
            for found in self.dead_ends
            if all(each.parameter in values for each in found.conditions) and matches_all(found.conditions, values)  # type: ignore[arg-type]
        ]

    def launched(self, **values: object) -> list[int]:
        """Return the numbers of the launches with these values that worked."""
        return [
            trial.number
            for trial in self.study.trials
            if trial.is_measured and all(trial.work.resolved[name] == value for name, value in values.items())
        ]

    @cached_property
    def best(self) -> dict[str, object]:
        """The assignment with the highest mean."""
        history = self.study.history()
        return dict(history.measured[history.ranking[0]])

    def followed_by(self, name: str, *before: Campaign) -> Campaign:
        """Return a campaign on another node in the same storage."""
        studies = (*before, self)
        earlier = [Ancestor(each.node.name, each.node.space, each.node.facts, each.dead_ends) for each in studies]
        node = load_node(name)
        return Campaign(node, inherit(earlier, node.space, node.facts))


@pytest.fixture(scope="module")
def before() -> Campaign:
    """The campaign with CUDA 12.8."""
    return Campaign(load_node("pcie8-blackwell-cuda128"))


@pytest.fixture(scope="module")
def upgraded(before: Campaign) -> Campaign:
    """The next campaign, after the upgrade to CUDA 13.1."""
    return before.followed_by("pcie8-blackwell-cuda131")


@pytest.fixture(scope="module")
def newer_engine(before: Campaign, upgraded: Campaign) -> Campaign:
    """One more, with an engine of 2026."""
    return upgraded.followed_by("pcie8-blackwell-engine2026", before)


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        (TREE, {Reason.COLLECTIVE_ERROR, Reason.CUDA_GRAPH_INCOMPATIBLE}),
        (FUSION, {Reason.JIT_COMPILE_ERROR, Reason.UNSUPPORTED_ARCH}),
        (SYMMETRIC, {Reason.UNSUPPORTED_ARCH}),
    ],
    ids=["tree", "fusion", "symmetric-memory"],
)
def test_what_a_probe_shows_is_confirmed_unaided(
    before: Campaign, values: dict[str, object], reasons: set[Reason]
) -> None:
    (found,) = [each for each in before.about(**values) if each.reason in reasons]
    assert (found.state, found.rung) == (DeadEndState.CONFIRMED, Rung.PROBE)
    assert before.launched(**values) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [(ALL_TO_ALL, Reason.ASSERTION), (DEEP_EP, Reason.MISSING_DEPENDENCY)],
    ids=["flashinfer", "deepep"],
)
def test_what_only_a_launch_shows_is_confirmed_unaided(
    before: Campaign, values: dict[str, object], reason: Reason
) -> None:
    """Experts with another all-to-all: found within the budget, by the value alone, with the right reason."""
    (found,) = [each for each in before.about(**values) if each.reason is reason]
    assert (found.state, found.rung in (Rung.DUMMY, Rung.FULL)) == (DeadEndState.CONFIRMED, True)
    assert [condition.parameter for condition in found.conditions] == ["moe_a2a_backend"]
    assert before.launched(moe_a2a_backend=values["moe_a2a_backend"]) == []


def test_the_custom_all_reduce_is_slow_and_not_dead(before: Campaign) -> None:
    """It works and loses: no ban, and the probe's time says so."""
    assert before.about(allreduce="custom") == []
    probes = {
        trial.work.resolved["allreduce"]: trial.outcome.value
        for trial in reversed(before.study.probes)
        if trial.is_measured and trial.outcome is not None
    }
    assert float(probes["custom"] or 0) > float(probes["nccl"] or 0)
    assert before.best["allreduce"] == "nccl"


def test_what_a_probe_showed_to_be_replaced_is_not_probed_again(before: Campaign) -> None:
    """This engine ignores the switch of the PCIe all-reduce: one probe shows it, and the search does not ask again."""
    asked = [probe for probe in before.study.probes if probe.work.requested["allreduce"] == "pcie_ipc"]
    assert len(asked) == 1
    assert asked[0].work.resolved["allreduce"] == "nccl"


def test_the_scoped_tree_is_offered_as_the_escape(before: Campaign) -> None:
    (found,) = before.about(**TREE)
    assert [(each.changes, each.state) for each in found.escapes] == [("nccl_algo=allreduce:tree", EscapeState.WORKED)]
    assert before.best["nccl_algo"] == "allreduce:tree"


def test_the_other_fusion_kernel_is_tried_as_the_escape_and_fails(before: Campaign) -> None:
    (found,) = [each for each in before.about(**FUSION) if each.escapes]
    assert [each.state for each in found.escapes] == [EscapeState.FAILED]
    assert not [t for t in before.study.trials if t.work.resolved["allreduce"] == "flashinfer_fusion_mnnvl"]


def test_the_upgrade_makes_stale_what_hangs_on_the_toolkit_and_nothing_else(upgraded: Campaign) -> None:
    states = {str(found): found.state for found in upgraded.inherited}
    assert states["allreduce = flashinfer_fusion_trtllm"] is DeadEndState.STALE
    assert states["nccl_algo = Tree"] is DeadEndState.STALE
    assert states["allreduce = torch_symm_mem"] is DeadEndState.CONFIRMED


def test_after_the_upgrade_the_fusion_is_checked_again_opened_and_best(upgraded: Campaign) -> None:
    first = upgraded.study.probes[0]
    assert (first.work.resolved["allreduce"], first.is_measured) == ("flashinfer_fusion_trtllm", True)
    assert [each.state for each in upgraded.about(**FUSION)] == [DeadEndState.REFUTED]
    assert upgraded.best["allreduce"] == "flashinfer_fusion_trtllm"


def test_after_the_upgrade_what_is_still_dead_is_confirmed_by_one_probe(upgraded: Campaign) -> None:
    (found,) = upgraded.about(**TREE)
    assert found.state is DeadEndState.CONFIRMED
    assert len(found.support) == 1
    assert found.scope["cuda"] == "13.1"


def test_what_the_engine_decides_is_never_tried_before_the_engine_changes(
    upgraded: Campaign, newer_engine: Campaign
) -> None:
    everything = (*upgraded.study.trials, *upgraded.study.probes)
    assert not [trial for trial in everything if trial.work.resolved["allreduce"] == "torch_symm_mem"]
    assert [each.state for each in newer_engine.inherited if each.covers(SYMMETRIC, SYMMETRIC)] == [DeadEndState.STALE]
    assert [each.state for each in newer_engine.about(**SYMMETRIC)] == [DeadEndState.REFUTED]
    asked = [probe for probe in newer_engine.study.probes if probe.work.requested["allreduce"] == "torch_symm_mem"]
    assert [probe.work.resolved["allreduce"] for probe in asked] == ["nccl"]  # the new engine replaces it silently
