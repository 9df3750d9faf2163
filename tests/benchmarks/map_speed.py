"""What the map costs in a long study: to build it anew, to learn one more trial, to ask it about an assignment.

    python -m tests.benchmarks.map_speed --trials 10000

Random launches of a generated node (half of them fail), as a study stores them; then further ones, one at a time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

from agent.deadends.atlas import Atlas
from agent.deadends.charter import Charter
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.reasons import REASONS, Reason
from agent.store.trial import Kind, Trial, Work
from runners import Phase, Rung
from search_spaces import Assignment, Condition, NodeModel
from search_spaces.node_generator import generate
from tests.support.simulated_study import START

Result = TypeVar("Result")
FURTHER, ASKED, DEAD_ENDS = 200, 2000, 500


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--node", type=int, default=5, help="seed of the generated node")
    given = parser.parse_args()
    node = generate(given.node)
    trials = launched(node, given.trials + FURTHER)
    failed = sum(trial.is_failed for trial in trials)
    first, further = trials[: given.trials], trials[given.trials :]
    charter = Charter(node.space, node.facts)
    seconds, atlas = timed(lambda: charter.chart(first, ()))
    share, number = failed / len(trials), len(atlas.dead_ends)
    print(f"{given.trials} trials, {share:.0%} failed: map of {number} dead ends built in {seconds:.2f} s")
    each = [timed(partial(charter.chart, trials[:end], ()))[0] for end in range(given.trials + 1, len(trials) + 1)]
    p99 = sorted(each)[int(0.99 * len(each))]
    middle, most = statistics.median(each), max(each)
    print(f"one more: median {1e3 * middle:.2f} ms, p99 {1e3 * p99:.2f} ms, most {1e3 * most:.2f} ms")
    points = [trial.work.resolved for trial in further]
    crowded = Atlas(tuple(many(node, atlas)))
    spent, _ = timed(lambda: [crowded.match(points[index % len(points)]) for index in range(ASKED)])
    print(f"one question with {len(crowded.dead_ends)} dead ends: {1e3 * spent / ASKED:.3f} ms")


def launched(node: NodeModel, number: int) -> list[Trial]:
    """Return random launches of a node as a study stores them, with the reasons that the node model plants."""
    generator = random.Random(0)
    return [stored(node, random_point(node, generator), index) for index in range(number)]


def stored(node: NodeModel, point: Assignment, number: int) -> Trial:
    """Return a closed trial of a launch of a point."""
    effective, _ = node.answers.resolved(point)
    planted = next((each for each in node.answers.matching(effective, "full") if not each.is_flaky), None)
    outcome = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
    if planted is not None:
        reason = Reason(planted.reason)
        failure = Failure(
            reason=reason,
            rule="planted",
            confidence=1.0,
            phase=Phase(planted.phase),
            blames=planted.blames or (),
            policy=REASONS[reason].policy,
            cure="",
        )
        outcome = Outcome(kind=OutcomeKind.FAILED, failure=failure)
    return Trial(
        study="study",
        number=number,
        work=Work(kind=Kind.SEARCH, rung=Rung.FULL, requested=point, resolved=point),
        cookie="c",
        lease=None,
        started_at=START + timedelta(seconds=number),
        closed_at=START + timedelta(seconds=number),
        outcome=outcome,
    )


def random_point(node: NodeModel, generator: random.Random) -> Assignment:
    """Return a random assignment in normal form."""
    point = {name: generator.choice(each.domain) for name, each in node.space.parameters.items()}
    return node.space.normalise(point, node.facts)


def many(node: NodeModel, atlas: Atlas) -> list[DeadEnd]:
    """Return that many confirmed dead ends of two random conditions each, none of them likely to match."""
    generator = random.Random(1)
    template = atlas.dead_ends[0]
    names = list(node.space.parameters)
    found = []
    for index in range(DEAD_ENDS):
        chosen = generator.sample(names, min(4, len(names)))
        conditions = tuple(
            Condition(parameter=name, value=generator.choice(node.space.parameters[name].domain)) for name in chosen
        )
        found.append(
            template.model_copy(update={"id": f"D{index}", "conditions": conditions, "state": DeadEndState.CONFIRMED})
        )
    return found


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds that a piece of work took, and its result."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


if __name__ == "__main__":
    main()
