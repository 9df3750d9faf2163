"""A campaign on a modelled node, killed and resumed anywhere, ends like one that nobody disturbed: noise included."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import Outcome
from agent.store.trial import Trial
from runners import EngineSettings, Resolution
from runners.replay import answer
from runners.replay_runner import ReplayRunner
from search_spaces import Assignment, Facts, NodeModel
from search_spaces.node_generator import generate
from tests.support.planted import Truth
from tests.support.simulated_study import SimulatedStudy
from tests.support.small_node import request_for

BUDGET = 14
FLAKY_SEED = 1


class RunnerOfNode(ReplayRunner):
    """The replay runner with its node model in hand instead of in a file."""

    def __init__(self, node: NodeModel) -> None:
        self._node = node

    def node_of(self, settings: EngineSettings) -> NodeModel:
        """Return the node, whatever the settings say."""
        return self._node

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what runs: only what the engine would tell is replaced."""
        return Resolution(assignment=self._node.answers.resolved(assignment, told_only=True)[0])


def campaign(node: NodeModel, folder: Path) -> SimulatedStudy:
    def judge(trial: Trial, _before: int) -> Outcome:
        work = trial.work
        found = answer(node, request_for(work.resolved, folder, rung=work.rung, identity=work.identity))
        log = folder / "engine.log"
        log.write_text("\n".join(found.log) + "\n", encoding="utf-8")
        return classify(found.record.model_copy(update={"log_path": str(log)}))

    return SimulatedStudy(Truth(node.space), BUDGET, runner=RunnerOfNode(node), judge=judge)


def closed(study: SimulatedStudy) -> list[tuple[str, Outcome | None]]:
    """Return identity and outcome of everything that counts, in order."""
    return [(t.work.identity, t.outcome) for t in (*study.trials, *study.probes) if t.counts]


@pytest.mark.parametrize("cut", [1, 2, 5, 9, 16, 23])
def test_a_campaign_killed_at_any_step_ends_like_an_undisturbed_one(cut: int, tmp_path: Path) -> None:
    node = generate(FLAKY_SEED, "small")
    undisturbed = campaign(node, tmp_path)
    undisturbed.run()
    killed = campaign(node, tmp_path)
    killed.run(steps=cut)
    resumed = killed.resumed()
    resumed.run()
    assert closed(resumed) == closed(undisturbed)
    assert len([trial for trial in resumed.trials if trial.counts]) == BUDGET
