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
from runners.replay.answer import answer
from search_spaces import Assignment, Facts, NodeModel, canonical_json, load_node, true_value


class ReplayRunner:
    """Runner of modelled nodes. The node model's path stands in the study's engine settings."""

    name = "replay"
    rungs = (Rung.RESOLVE, Rung.PROBE, Rung.FULL)

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what would run: silent fallbacks of which the engine tells, and settings that it refuses at once."""
        node = self.node_of(settings)
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

    def command(self, request: TrialRequest) -> Command:
        """Return a command that prints what the model says of the assignment."""
        levels = ",".join(map(str, request.workload.concurrency))
        model, point = request.settings.node_model or "", canonical_json(request.assignment)
        argv = (sys.executable, "-m", "runners.replay_runner", "--node", model, "--concurrency", levels)
        return Command(argv=(*argv, "--assignment", point))

    def run(self, request: TrialRequest) -> RunRecord:
        """Answer a launch and write its log."""
        found = answer(self.node_of(request.settings), request)
        folder = Path(request.artifact_dir)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "engine.log"
        log.write_text("\n".join(found.log) + "\n", encoding="utf-8")
        argv = self.command(request).argv
        return found.record.model_copy(update={"log_path": str(log), "argv": argv})

    def node_of(self, settings: EngineSettings) -> NodeModel:
        """Return the node model that the settings name.

        Raises:
            ValueError: when they name none.
        """
        if settings.node_model is None:
            raise ValueError("the replay engine needs a node model in its settings (node_model)")
        return load_node(settings.node_model)

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Answer probes, in order."""
        return [self.run(request) for request in requests]


def main() -> None:
    """Print what a node model says of one assignment."""
    parser = argparse.ArgumentParser(description="What a node model says of one assignment; nothing is launched.")
    parser.add_argument("--node", required=True, help="name of a shipped node, or a file")
    parser.add_argument("--assignment", default="{}", help="JSON: what differs from the default")
    parser.add_argument("--concurrency", default=",".join(map(str, Workload().concurrency)))
    given = parser.parse_args()
    node = load_node(given.node)
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
