"""A study on a modelled node without Ray, disk or engine: the loop's rules against a known truth, in milliseconds."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from agent.classify import classify
from agent.goals import OUTPUT, Goal
from agent.judge import scored
from agent.outcome import Outcome
from agent.settings import StudySettings
from agent.store.trial import Trial
from runners import EngineSettings, Runner, RunRecord, TrialRequest, Workload
from runners.replay.answer import answer
from runners.replay_runner import ReplayRunner
from search_spaces import Facts, NodeModel, SearchSpace
from tests.support.planted import Truth
from tests.support.simulated_study import SimulatedStudy


class ModelledRunner(ReplayRunner):
    """The replay engine with its node at hand instead of in a file."""

    def __init__(self, node: NodeModel) -> None:
        self._node = node

    def node_of(self, settings: EngineSettings) -> NodeModel:
        """Return the node, whatever the settings say."""
        return self._node


@dataclass
class ModelledStudy(SimulatedStudy):
    """A study of the replay engine's answers, judged by the real classifier."""

    truth: Truth = field(init=False)
    runner: Runner = field(init=False)
    node: NodeModel = field(kw_only=True)
    stops_early: bool = field(default=True, kw_only=True)
    goals: tuple[Goal, ...] = field(default=(OUTPUT,), kw_only=True)

    def __post_init__(self) -> None:
        self.truth, self.runner = Truth(self.node.space), ModelledRunner(self.node)

        super().__post_init__()

    @property
    def space(self) -> SearchSpace:
        """The node's space."""
        return self.node.space

    @property
    def facts(self) -> Facts:
        """The node's facts."""
        return self.node.facts

    @property
    def settings(self) -> StudySettings:
        """A study with all defaults."""
        num_ranks = int(str(self.node.facts["num_ranks"]))
        engine = EngineSettings(engine="replay", num_ranks=num_ranks, device="cuda", node_model=self.node.name)
        return StudySettings(
            name="study",
            engine=engine,
            space=self.node.name,
            seed=self.seed,
            workload=Workload(seed=self.seed),
            stop_early=self.stops_early,
            goals=self.goals,
        )

    def answer(self, trial: Trial, before: int) -> tuple[Outcome, RunRecord]:
        """Return what the model answers, as the classifier understands it."""
        request = TrialRequest(
            study=trial.study,
            trial=trial.number,
            identity=trial.work.identity,
            rung=trial.work.rung,
            settings=self.settings.engine,
            assignment=trial.work.resolved,
            workload=self.settings.workload,
            stop=self.stop_rules.get(trial.work.identity),
            cookie="c",
            environment={},
            artifact_dir="/nowhere",
        )
        outcome, record = judged(self.node, request)
        return scored(outcome, record, self.goals), record


def judged(node: NodeModel, request: TrialRequest) -> tuple[Outcome, RunRecord]:
    """Return what a modelled launch comes to."""
    found = answer(node, request)
    if found.record.measurement or found.record.probe or found.record.passed:
        return classify(found.record), found.record
    names = tuple({**node.space.env_names, **node.space.flag_names}.items())
    end = found.record.model_copy(update={"phase_s": {}, "wall_s": 0.0, "excerpt": (), "effects": ()})
    lines = tuple(line for line in found.log if not line.startswith("[replay] modelled phase="))
    return _classified(end, lines, names), found.record


@lru_cache(maxsize=4096)
def _classified_text(record: str, lines: tuple[str, ...], names: tuple[tuple[str, str], ...]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "engine.log"
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        parsed = RunRecord.model_validate_json(record)
        return classify(parsed.model_copy(update={"log_path": str(log)}), env_names=dict(names))


def _classified(record: RunRecord, lines: tuple[str, ...], names: tuple[tuple[str, str], ...]) -> Outcome:
    return _classified_text(record.model_dump_json(), lines, names)
