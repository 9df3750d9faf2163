"""What the report of a long study costs: seconds to make it, and its size.

    python -m tests.benchmarks.report_size --trials 2000

Random launches of a generated node (half of them fail), each with the model's record; the map is the one they give.
"""

from __future__ import annotations

import argparse
import random

from agent.deadends.charter import Charter
from agent.propose.history import History
from agent.report_page import render
from agent.store.trial import Kind, Trial, Work
from agent.summary import summarise
from runners import Rung
from search_spaces import NodeModel
from search_spaces.node_generator import generate
from tests.benchmarks.map_speed import random_point, timed
from tests.support.modelled_study import ModelledStudy
from tests.support.simulated_study import START


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--node", type=int, default=5, help="seed of the generated node")
    given = parser.parse_args()
    history = random_history(given.node, given.trials)
    summary = summarise(history, "long")
    seconds, page = timed(lambda: render(summary, history, {}, "the command"))
    failed = summary.outcomes["failed"]
    print(f"{given.trials} launches ({failed} failed, {len(summary.atlas.dead_ends)} dead ends)")
    print(f"report made in {seconds:.1f} s, {len(page.encode()) / 2**20:.1f} MiB")


def random_history(seed: int, number: int, node: NodeModel | None = None) -> History:
    """Return a study of so many random launches, judged and charted; by default of the node generated from the seed."""
    study = ModelledStudy(budget=number, node=node or generate(seed))
    generator, trials = random.Random(seed), list[Trial]()
    for index in range(number):
        point = random_point(study.node, generator)
        opened = Trial(
            study="long",
            number=index,
            work=Work(kind=Kind.SEARCH, rung=Rung.FULL, requested=point, resolved=point),
            cookie="c",
            lease=None,
            started_at=START,
        )
        outcome, record = study.answer(opened, 0)
        closed = outcome.model_copy(update={"closed_at": START})
        trials.append(opened.closed(closed, record))
    charter = Charter(study.space, study.facts)
    return History(
        settings=study.settings,
        space=study.space,
        facts=study.facts,
        runner=study.runner,
        trials=tuple(trials),
        probes=(),
        atlas=charter.chart(trials, ()),
        budget=number,
    )


if __name__ == "__main__":
    main()
