"""Runs nothing: answers trials from a node model, in simulated time, for tests, benchmarks and demonstrations."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from runners.contract import (
    Command,
    EngineSettings,
    Resolution,
    Rewrite,
    Rung,
    RunRecord,
    TrialRequest,
    Workload,
)
from runners.replay import answer, recorded_answer
from search_spaces import Assignment, Facts, NodeModel, RecordedNode, canonical_json, load_replayed, true_value
from search_spaces.node_table import NOT_RECORDED


class ReplayRunner:
    """Runner of modelled nodes. The node model's path stands in the study's engine settings."""

    name = "replay"
    rungs = (Rung.PROBE, Rung.DUMMY, Rung.FULL)

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what would run: silent fallbacks of which the engine tells, and settings that it refuses at once."""
        node = self.node_of(settings)
        if isinstance(node, RecordedNode):
            return Resolution(assignment=assignment, error=None if node.recorded(assignment) else NOT_RECORDED)
        resolved, taken = node.answers.resolved(assignment, told_only=True)
        why = "; ".join(no_op.why for no_op in taken)
        rewrites = tuple(
            Rewrite(parameter=name, requested=value, resolved=resolved[name], why=why)
            for name, value in assignment.items()
            if resolved[name] != value
        )
        refusals = (each for each in node.answers.matching(resolved, "full") if each.phase == "resolve")
        refused = next((f"{each.reason}: {each.log[-1]}" for each in refusals if not each.is_flaky), None)
        return Resolution(assignment=resolved, rewrites=rewrites, error=refused)

    def rungs_for(self, settings: EngineSettings) -> tuple[Rung, ...]:
        """Return the rungs that the node has; of a dummy launch a recorded table knows nothing."""
        node = self.node_of(settings)
        there = ("probe", "full") if isinstance(node, RecordedNode) else node.file.rungs
        return tuple(rung for rung in self.rungs if rung.value in there)

    def command(self, request: TrialRequest) -> Command:
        """Return a command that prints what the model says of the assignment."""
        levels = ",".join(map(str, request.workload.concurrency))
        model, point = request.settings.node_model or "", canonical_json(request.assignment)
        argv = (sys.executable, "-m", "runners.replay_runner", "--node", model, "--concurrency", levels)
        return Command(argv=(*argv, "--assignment", point))

    def run(self, request: TrialRequest) -> RunRecord:
        """Answer a launch and write its log."""
        node = self.node_of(request.settings)
        found = recorded_answer(node, request) if isinstance(node, RecordedNode) else answer(node, request)
        folder = Path(request.artifact_dir)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "engine.log"
        log.write_text("\n".join(found.log) + "\n", encoding="utf-8")
        argv = self.command(request).argv
        return found.record.model_copy(update={"log_path": str(log), "argv": argv})

    def node_of(self, settings: EngineSettings) -> NodeModel | RecordedNode:
        """Return the node model or the recorded table that the settings name.

        Raises:
            ValueError: when they name none.
        """
        if settings.node_model is None:
            raise ValueError("the replay engine needs a node model in its settings (node_model)")
        return load_replayed(settings.node_model)

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Answer probes, in order."""
        return [self.run(request) for request in requests]


def _print_recorded(node: RecordedNode, assignment: Assignment) -> None:
    default = node.space.default_on(node.facts)
    point = node.space.normalise({**default, **assignment}, node.facts)
    print(f"modelled node {node.name}, recorded: {canonical_json(point)}")
    for trial in node.recorded(point):
        rates = ", ".join(f"{level.tok_per_s:.1f} at concurrency {level.concurrency}" for level in trial.levels)
        print(f"modelled tok/s: {rates}" if trial.failure is None else f"modelled failure: {trial.failure.reason}")
    if not node.recorded(point):
        print(NOT_RECORDED)


def main() -> None:
    """Print what a node model says of one assignment."""
    parser = argparse.ArgumentParser(description="What a node model says of one assignment; nothing is launched.")
    parser.add_argument("--node", required=True, help="name of a shipped node, or a file")
    parser.add_argument("--assignment", default="{}", help="JSON: what differs from the default")
    parser.add_argument("--concurrency", default=",".join(map(str, Workload().concurrency)))
    given = parser.parse_args()
    node = load_replayed(given.node)
    if isinstance(node, RecordedNode):
        _print_recorded(node, json.loads(given.assignment))
        return
    point = node.space.normalise({**node.default, **json.loads(given.assignment)}, node.facts)
    levels = [int(level) for level in given.concurrency.split(",")]
    effective, _ = node.answers.resolved(point)
    failures = [failure.name for failure in node.answers.matching(effective, "full")]
    figures = {level: round(node.answers.figures(effective, level).tok_per_s, 1) for level in levels}
    print(f"modelled node {node.name}: {canonical_json(point)}")
    if effective != point:
        print(f"modelled: runs as {canonical_json(effective)}")
    if failures:
        print(f"modelled failures: {', '.join(failures)}")
    if true_value(node, point, levels) is not None:
        print("modelled tok/s: " + ", ".join(f"{rate} at concurrency {level}" for level, rate in figures.items()))


if __name__ == "__main__":
    main()
