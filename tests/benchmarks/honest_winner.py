"""How good the declared winner is where launches differ by 5, 10 and 20 %, and whether its verdict can be believed.

    python -m tests.benchmarks.honest_winner --workers 2 --into runs.jsonl
    python -m tests.benchmarks.honest_winner --null 40 --workers 2 --into null.jsonl

Nodes are models with their launch-to-launch noise replaced. Regret is the share of the true value that the declared
winner misses: of the best of the whole space, and of the best that the study launched at all, which is as much as
repeats can find. The same studies are judged by the best single run as well. With --null, the nodes are such that
nothing beats the baseline: every assignment that works is worth the same, so each gain that is declared is false.
With --walk, the node has no failures and a random walk around the best launch stands in for the search: what is left is
the declaration, at a tenth of the cost. With --into, studies that are in the file already are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import Pool
from pathlib import Path

from agent.propose.history import History
from agent.propose.standing import Standing
from agent.store.trial import Kind, Work
from agent.summary import summarise
from agent.verdict import Verdict
from runners import Rung
from search_spaces import Assignment, NodeModel, assignment_key, load_node, true_value
from search_spaces.node_best import best
from search_spaces.node_generator import generate
from search_spaces.node_loader import shipped_nodes
from tests.support.modelled_study import ModelledStudy

BUDGET = 40
NOISES = (0.05, 0.10, 0.20)
Job = tuple[str, float, int, int, bool]
"""Node, noise, seed, budget, whether a walk stands in for the search."""
NEAR = 3
"""Best launches around which the walk steps."""


@dataclass(frozen=True, slots=True)
class Run:
    """One study, and what each rule would have declared."""

    node: str
    noise: float
    seed: int
    budget: int
    walks: bool
    """Whether a walk stood in for the search."""
    regret: dict[str, float]
    """Rule → regret against the best of the space."""
    among: dict[str, float]
    """Rule → regret against the best that was launched."""
    verdict: str
    true_ratio: float | None
    """Of the declared winner to the baseline; None where one is missing."""
    covered: bool | None
    """Whether the interval holds the true ratio; None without an interval."""
    width: float | None
    """Width of the interval in logarithms."""
    hours: float
    repeating: float
    """Share of the node time that repeats took."""

    @property
    def job(self) -> Job:
        """What it was run for."""
        return self.node, self.noise, self.seed, self.budget, self.walks


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", nargs="*", default=None, help="by default all shipped nodes")
    parser.add_argument("--noise", type=float, nargs="*", default=list(NOISES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--null", type=int, default=0, help="instead: so many generated nodes without any gain")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--walk", action="store_true", help="a random walk instead of the search")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--into", type=Path, help="JSON lines of the studies")
    given = parser.parse_args()
    names = [f"null-{seed}" for seed in range(given.null)] or given.nodes or list(shipped_nodes())
    seeds = 1 if given.null else given.seeds
    known = _read(given.into) if given.into else {}
    jobs = [
        (name, noise, seed, given.budget, given.walk)
        for seed in range(given.first_seed, given.first_seed + seeds)
        for name in names
        for noise in given.noise
    ]
    with Pool(given.workers) as pool:
        for found in pool.imap_unordered(_job, [job for job in jobs if job not in known]):
            known[found.job] = found
            if given.into:
                with given.into.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
    runs = sorted((known[job] for job in jobs), key=lambda each: each.noise)
    print(f"{len(names)} nodes x {seeds} seeds, {given.budget} launches, modelled\n")
    print(_table(runs))


def _job(job: Job) -> Run:
    return run(*job)


def _read(path: Path) -> dict[Job, Run]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    runs = [Run(**json.loads(line)) for line in lines]
    return {each.job: each for each in runs}


def run(name: str, noise: float, seed: int, budget: int, walks: bool = False) -> Run:
    """Run one study and judge its end by every rule."""
    node = node_of(name, noise, walks)
    study = ModelledStudy(node=node, budget=budget, seed=seed)
    if walks:
        walk(study, budget - int(study.settings.contender_share * budget))
    study.run()
    history = study.history()
    summary = summarise(history, "study")
    declared = {"declared": history.measured and summary.best and summary.best.first.work.key, **_rules(history)}
    top = _top(name, walks)
    launched = max((_true(history, key) for key in history.measured), default=0.0)
    found = summary.comparison
    winner, baseline = declared["declared"], history.baseline_key
    ratio = _true(history, winner) / _true(history, baseline) if winner and baseline else None
    everything = [trial for trial in (*study.trials, *study.probes) if trial.record is not None]
    spent = sum(trial.record.wall_s for trial in everything)
    repeats = sum(trial.record.wall_s for trial in everything if trial.work.kind is Kind.REPEAT)
    return Run(
        node=name,
        noise=noise,
        seed=seed,
        budget=budget,
        walks=walks,
        regret={rule: 1 - (_true(history, key) / top if key else 0.0) for rule, key in declared.items()},
        among={rule: 1 - (_true(history, key) / launched if key else 0.0) for rule, key in declared.items()},
        verdict=summary.verdict,
        true_ratio=ratio,
        covered=None if found is None or ratio is None else found.low <= ratio <= found.high,
        width=None if found is None else math.log(found.high / found.low),
        hours=spent / 3600,
        repeating=repeats / spent,
    )


def _rules(history: History) -> dict[str, str | None]:
    """Return whom other rules would declare: the luckiest single run, and means of repeats or of all launches."""
    standing, values = Standing(history), history.values
    repeated = standing.repeated or list(values)
    return {
        "best single run": max(values, key=lambda key: values[key][0], default=None),
        "mean of repeats": max(
            repeated, key=lambda key: statistics.fmean(standing.repeats(key) or [0.0]), default=None
        ),
        "mean of all": max(repeated, key=history.mean, default=None),
        "expected, all": standing.first,
    }


def _true(history: History, key: str) -> float:
    runner = history.runner
    node = runner.node_of(history.settings.engine)  # type: ignore[attr-defined]
    return true_value(node, history.measured[key]) or 0.0


def walk(study: ModelledStudy, launches: int) -> None:
    """Launch the default, the baseline twice, and then steps of one or two values from one of the best so far."""
    rng, space, facts = random.Random(f"walk/{study.node.name}/{study.seed}"), study.space, study.facts
    default = space.normalise(space.default_on(facts), facts)
    plain = space.normalise({**default, **space.baseline}, facts)
    done = {assignment_key(default): _launch(study, default, Kind.DEFAULT)}
    done[assignment_key(plain)] = _launch(study, plain, Kind.BASELINE)
    study.launch(study.trials[-1].work.again(Kind.REPEAT, 0, "the baseline again"))
    points = {assignment_key(default): default, assignment_key(plain): plain}
    while len(study.trials) < launches:
        start = points[rng.choice(sorted(done, key=lambda key: -done[key])[:NEAR])]
        for _ in range(rng.choice((1, 2))):
            start = rng.choice(list(space.single_changes(start)))
        point = space.normalise(start, facts)
        key = assignment_key(point)
        if key not in points and space.violation(point, facts) is None:
            points[key], done[key] = point, _launch(study, point, Kind.SEARCH)


def _launch(study: ModelledStudy, point: Assignment, kind: Kind) -> float:
    study.launch(Work(kind=kind, rung=Rung.FULL, requested=point, resolved=point))
    outcome = study.trials[-1].outcome
    assert outcome is not None and outcome.value is not None
    return outcome.value


@lru_cache(maxsize=8)
def node_of(name: str, noise: float, harmless: bool = False) -> NodeModel:
    """Return a node with this noise: shipped, generated (its seed as name) or without any gain (`null-` and a seed).

    Args:
        name: The node.
        noise: Standard deviation from launch to launch, as a share.
        harmless: Whether nothing fails there, and nothing is silently replaced.
    """
    seed = name.removeprefix("null-")
    node = generate(int(seed), "small") if seed.isdigit() else load_node(name)
    assert isinstance(node, NodeModel)
    update: dict[str, object] = {"noise": node.file.noise.model_copy(update={"launch_sd": noise})}
    if harmless:
        update |= {"failures": (), "no_ops": ()}
    if name.startswith("null-"):
        update["performance"] = node.file.performance.model_copy(update={"effects": (), "draft": None})
    return NodeModel(node.file.model_copy(update=update), node.space)


@lru_cache(maxsize=64)
def _top(name: str, harmless: bool) -> float:
    found = best(node_of(name, 0.05, harmless))
    assert found is not None, f"nothing works on {name}"
    return found.value


def _table(runs: Sequence[Run]) -> str:
    header = ("launches differ by", "rule", "regret: median", "mean", "of what was launched: median", "mean")
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for noise in dict.fromkeys(each.noise for each in runs):
        mine = [each for each in runs if each.noise == noise]
        for rule in mine[0].regret:
            columns = [[each.regret[rule] for each in mine], [each.among[rule] for each in mine]]
            cells = [f"{100 * measure(column):.1f} %" for column in columns for measure in (statistics.median, _mean)]
            lines.append("| " + " | ".join((f"{noise:.0%}", rule, *cells)) + " |")
    lines += ["", *(_verdicts(noise, [each for each in runs if each.noise == noise]) for noise in _noises(runs))]
    return "\n".join(lines)


def _verdicts(noise: float, runs: Sequence[Run]) -> str:
    """Return what was claimed, and how often it was true."""
    counts = {verdict.value: sum(each.verdict == verdict.value for each in runs) for verdict in Verdict}
    false = sum(each.verdict == Verdict.GAIN.value and (each.true_ratio or 0.0) <= 1.0 + 1e-9 for each in runs)
    nothing = sum((each.true_ratio or 0.0) <= 1.0 + 1e-9 for each in runs)
    covered = [each.covered for each in runs if each.covered is not None]
    width = [each.width for each in runs if each.width is not None]
    hours = _mean([each.hours for each in runs])
    said = ", ".join(f"{name} {number}" for name, number in counts.items() if number)
    return (
        f"{noise:.0%}: {said}, none {len(runs) - sum(counts.values())}; false gains {false} of {len(runs)} studies "
        f"({nothing} without one to find); the interval holds the true ratio in {sum(covered)} of {len(covered)}, "
        f"median width {100 * statistics.median(width or [math.nan]):.0f} %; node time {hours:.1f} h, "
        f"of which repeats {_mean([r.repeating for r in runs]):.0%}"
    )


def _noises(runs: Sequence[Run]) -> Iterable[float]:
    return dict.fromkeys(each.noise for each in runs)


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


if __name__ == "__main__":
    main()
