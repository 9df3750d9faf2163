"""Do probes order the collectives as the engine does? Kendall's τ between pass times and tokens per second.

    python -m tests.benchmarks.probe_against_engine --home STATE --study sglang --probe probe.json
    python -m tests.benchmarks.probe_against_engine --probe probe.json --table tok_per_s.json

`probe.json` is what `agent probe --json` printed; without it the study's own probes count. The table is a JSON object:
name of a row as `agent probe` prints it (`nccl nccl_algo=allreduce:tree`) → output tokens per second. Of a study, only
launches that are equal but for what a probe sees are compared with each other; groups are reported apart. τ is 1 where
less communication time always means more tokens per second, 0 where they have nothing to do with each other.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from scipy.stats import kendalltau

from agent.home import Home
from agent.propose.history import History
from agent.reading import read_study
from search_spaces import Assignment
from search_spaces.switches import value_text


@dataclass(frozen=True)
class Pair:
    """One collective as the probe and the engine saw it."""

    name: str
    pass_us: float
    tok_per_s: float
    """Mean over its launches."""


@dataclass(frozen=True)
class Order:
    """How well two orders agree."""

    group: str
    """What the launches have in common, where it is not the default."""
    pairs: tuple[Pair, ...]

    @property
    def tau(self) -> float | None:
        """Kendall's τ-b; None with fewer than two pairs or where all are equal."""
        if len(self.pairs) < 2:
            return None
        found = kendalltau([-pair.pass_us for pair in self.pairs], [pair.tok_per_s for pair in self.pairs]).statistic
        return None if found != found else float(found)

    def as_json(self) -> dict[str, object]:
        """Return everything, fastest probe first."""
        ranked = sorted(self.pairs, key=lambda pair: pair.pass_us)
        return {"group": self.group, "pairs": [vars(pair) for pair in ranked], "n": len(ranked), "tau": self.tau}


def of_table(probe: Mapping[str, object], table: Mapping[str, float]) -> list[Order]:
    """Return the order of a probe's rows against a table's figures."""
    times = {_name(row["values"]): row["pass_us"] for row in _rows(probe) if row["pass_us"] is not None}
    unknown = sorted(set(table) - set(times))
    if unknown:
        raise click.UsageError(f"the probe has no time for: {', '.join(unknown)}. It has: {', '.join(sorted(times))}")
    return [Order("", tuple(Pair(name, times[name], figure) for name, figure in table.items()))]


def of_study(history: History, probe: Mapping[str, object] | None) -> list[Order]:
    """Return the orders of a study's launches, one for each group that differs only in what a probe sees."""
    times = dict(_times(history, probe))
    visible = history.space.probe_parameters
    groups: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    for assignment in history.measured.values():
        key = _key(assignment, visible)
        if key in times:
            rest = {name: value for name, value in assignment.items() if name not in visible}
            common = _changes(rest, history.default)
            seen = {name: assignment[name] for name in visible}
            mean = history.mean(next(each for each, point in history.measured.items() if point == assignment))
            groups[common][key] = (_changes(seen, history.default) or "default", mean)
    return [
        Order(common, tuple(Pair(name, times[key], mean) for key, (name, mean) in found.items()))
        for common, found in sorted(groups.items())
    ]


def _times(history: History, probe: Mapping[str, object] | None) -> Iterator[tuple[str, float]]:
    """Yield (what a probe sees, communication time of a pass in microseconds)."""
    visible = history.space.probe_parameters
    if probe is None:
        for trial in history.probes:
            if trial.is_measured and trial.outcome is not None and trial.outcome.value is not None:
                yield _key(trial.work.resolved, visible), trial.outcome.value
        return
    for row in _rows(probe):
        if row["pass_us"] is not None and row["state"] == "works":
            point = history.space.normalise({**history.default, **row["values"]}, history.facts)
            yield _key(point, visible), row["pass_us"]


def _rows(probe: Mapping[str, object]) -> list[dict[str, object]]:
    rows = probe.get("rows")
    if not isinstance(rows, list):
        raise click.UsageError("this is not what `agent probe --json` prints: it has no rows")
    return rows


def _key(assignment: Assignment, names: Sequence[str]) -> str:
    return json.dumps([repr(assignment[name]) for name in names])


def _changes(values: Assignment, default: Assignment) -> str:
    return _name({name: value for name, value in values.items() if value != default[name]})


def _name(values: object) -> str:
    """Return the name of a row as `agent probe` prints it."""
    items = values.items() if isinstance(values, Mapping) else ()
    return " ".join(
        value_text(value) if name == "allreduce" else f"{name}={value_text(value)}" for name, value in items
    )


def _read(path: Path | None) -> dict[str, object] | None:
    if path is None:
        return None
    content: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return content


@click.command()
@click.option("--probe", type=click.Path(path_type=Path, exists=True), help="What `agent probe --json` printed.")
@click.option(
    "--table", type=click.Path(path_type=Path, exists=True), help="JSON: row of the probe → tokens per second."
)
@click.option("--home", help="State folder of a study.")
@click.option("--study", help="Name of the study.")
def main(probe: Path | None, table: Path | None, home: str | None, study: str | None) -> None:
    """Print the pairs and τ as JSON, one object a group."""
    probed, figures = _read(probe), _read(table)
    if figures is not None:
        if probed is None:
            raise click.UsageError("--table needs --probe")
        orders = of_table(probed, {name: float(str(figure)) for name, figure in figures.items()})
    else:
        orders = of_study(read_study(Home.find(home), study, None).history, probed)
    if not any(order.pairs for order in orders):
        raise click.UsageError("no launch was measured with what was probed")
    print(json.dumps([order.as_json() for order in orders], indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
