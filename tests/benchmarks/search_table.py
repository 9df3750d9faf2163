"""Tables of studies that `search_efficiency` ran, from its file of results.

    python -m tests.benchmarks.search_table studies.jsonl [MORE.jsonl …]

A median has an 80 % bootstrap interval: other seeds on the same nodes (each node's studies are drawn again). A study
that never came close enough counts with infinite hours; a median among those says `unreached`.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

REACHED = (0.10, 0.05)
"""Regrets of which the hours until then are told."""
DRAWS = 1000
OURS, RIVAL = "agent", "TPE, failures told PRUNED"


@dataclass(frozen=True, slots=True)
class Run:
    """One study of one strategy."""

    job: str
    """The node as it was asked for: a name, a path, or the seed of a generated one."""
    node: str
    seed: int
    strategy: str
    budget: int
    regret: float
    """Of the declared best."""
    best_regret: float
    """Of the best assignment that was launched, declared or not."""
    hours: float
    hours_to: tuple[float, ...]
    """Node time until a launch came this close to the best, for each of REACHED; infinite where none did."""
    known: float
    """Share of the node time spent on failures whose cause had failed twice before, but for the map's experiments."""
    confirming: float
    """Share of it spent on launches that only confirm or repeat."""
    probing: float
    """Share of it spent on probes, and on the map's experiments with made-up weights."""
    failures: int
    cpu_s: float
    """Seconds that the study took here, of one core."""

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What tells one study from another."""
        return (self.job, self.seed, self.strategy, self.budget)


def line_of(run: Run) -> str:
    """Return a study as one line of a file of results."""
    data = asdict(run) | {"hours_to": [None if math.isinf(hours) else hours for hours in run.hours_to]}
    return json.dumps(data) + "\n"


def runs_in(path: Path) -> list[Run]:
    """Return the studies in a file of results; a last line that was cut off is left out.

    Raises:
        ValueError: for any other line that is no study of this version, with file and line.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    runs = []
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            break
        data = json.loads(line)
        if set(data) != {field.name for field in fields(Run)}:
            raise ValueError(f"{path}:{number}: other figures than this version's; write into a new file")
        hours = tuple(math.inf if each is None else each for each in data["hours_to"])
        runs.append(Run(**{**data, "hours_to": hours}))
    return runs


def tables(runs: Sequence[Run]) -> str:
    """Return the tables: regret by node, then everything by strategy."""
    strategies = tuple(dict.fromkeys(run.strategy for run in runs))
    seeds = sorted({run.seed for run in runs})
    nodes = {run.node for run in runs}
    budgets = "/".join(str(budget) for budget in sorted({run.budget for run in runs}))
    head = f"{len(nodes)} nodes x {len(seeds)} seeds, {budgets} launches, modelled; medians [80 % interval]\n"
    return "\n".join((head, _by_node(runs, strategies), _by_strategy(runs, strategies), _ratio(runs)))


def _by_node(runs: Sequence[Run], strategies: Sequence[str]) -> str:
    lines = ["| node | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for node in sorted({run.node for run in runs}):
        cells = [_per_cent([r for r in runs if r.node == node and r.strategy == s]) for s in strategies]
        lines.append(f"| {node} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _by_strategy(runs: Sequence[Run], strategies: Sequence[str]) -> str:
    near = [f"{regret:.0%}" for regret in REACHED]
    header = ["strategy", "regret", "mean", "of the best launched", *(f"hours to {each}" for each in near)]
    header += ["unreached " + " / ".join(near), "known dead", "confirming", "probing", "CPU s a study"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for strategy in strategies:
        mine = [run for run in runs if run.strategy == strategy]
        unreached = [sum(math.isinf(run.hours_to[at]) for run in mine) / len(mine) for at in range(len(REACHED))]
        cells = [strategy, _per_cent(mine), f"{statistics.fmean(run.regret for run in mine):.1%}"]
        cells.append(f"{statistics.median(run.best_regret for run in mine):.1%}")
        cells += [_hours(mine, at) for at in range(len(REACHED))]
        cells.append(" / ".join(f"{share:.0%}" for share in unreached))
        cells += [f"{statistics.fmean(getattr(r, name) for r in mine):.1%}" for name in _SHARES]
        cells.append(f"{statistics.fmean(run.cpu_s for run in mine):.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


_SHARES = ("known", "confirming", "probing")


def _ratio(runs: Sequence[Run]) -> str:
    """Return the median regret as a share of the rival's, over the same nodes and seeds."""
    mine, theirs = ([run.regret for run in runs if run.strategy == name] for name in (OURS, RIVAL))
    if not mine or not theirs or not (rival := statistics.median(theirs)):
        return ""
    return f"median regret of '{OURS}' / of '{RIVAL}': {statistics.median(mine) / rival:.2f}"


def _per_cent(runs: Sequence[Run]) -> str:
    if not runs:
        return "–"
    low, middle, high = _interval(runs, lambda run: run.regret)
    return f"{100 * middle:.1f} [{100 * low:.1f}, {100 * high:.1f}] %"


def _hours(runs: Sequence[Run], at: int) -> str:
    low, middle, high = (
        "unreached" if math.isinf(hours) else f"{hours:.1f}" for hours in _interval(runs, lambda run: run.hours_to[at])
    )
    return f"{middle} [{low}, {high}]"


def _interval(runs: Sequence[Run], figure: Callable[[Run], float]) -> tuple[float, float, float]:
    """Return the low end of a median's interval, the median, and the high end."""
    by_node: dict[str, list[float]] = {}
    for run in runs:
        by_node.setdefault(run.node, []).append(figure(run))
    generator = random.Random(0)
    drawn = sorted(
        statistics.median([each for found in by_node.values() for each in generator.choices(found, k=len(found))])
        for _ in range(DRAWS)
    )
    middle = statistics.median(figure(run) for run in runs)
    return drawn[DRAWS // 10], middle, drawn[-DRAWS // 10]


def main() -> None:
    """Print the tables of the files that are named."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: python -m {__spec__.name} FILE …")
    print(tables([run for name in sys.argv[1:] for run in runs_in(Path(name))]))


if __name__ == "__main__":
    main()
