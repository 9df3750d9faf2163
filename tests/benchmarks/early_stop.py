"""What stopping early saves on modelled nodes, and how often it stops what is as good as the best.

    python -m tests.benchmarks.early_stop --seeds 20                # launches in a row that nothing chooses
    python -m tests.benchmarks.early_stop --seeds 2 --search        # whole studies of the search

Without `--search` a study is the default, the baseline, and 60 launches that work: random points, changes of the
default and changes of the best, in random order, a fifth of them repeats of the best so far, so that there are both
many bad launches and many that must not be stopped.

Each node has another noise from launch to launch. The spread is known beforehand, as an earlier study with REPEATS
repeats would have measured it (so it is itself uncertain), or only by the study's own repeats. Measuring time is the
modelled time of serving. A false stop is one of a launch whose true objective lies within 2 % of the best true
objective that the study had launched by then. Every launch under a rule is counted, stopped or not.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import Pool

from agent.propose.history import History
from agent.propose.order import Launches, Proposal
from agent.spread import Spread
from agent.stopping import bar, stop_rule, study_spread
from agent.store.trial import Kind, Trial, Work
from agent.summary import summarise
from runners import Phase, Rung
from search_spaces import Assignment, NodeModel, load_node, true_value
from search_spaces.node_best import Best, best
from search_spaces.node_loader import shipped_nodes
from tests.support.modelled_study import ModelledStudy

BUDGET, CANDIDATES, REPEATS, REPEATED = 40, 60, 8, 0.2
NOISES = (0.05, 0.10, 0.20)
NEAR = 0.02
"""Share of the best within which a launch must not be stopped."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One launch under a stop rule."""

    behind: float
    """How far its true objective lies below the incumbent's mean, in margins of the rule."""
    is_near: bool
    is_stopped: bool
    measured_s: float
    saved_s: float


@dataclass(frozen=True, slots=True)
class Study:
    """One study: its launches under a rule, its time, and how good its declared best is."""

    noise: float
    is_known: bool
    watched: tuple[Watched, ...]
    serve_s: float
    node_s: float
    regret: float
    regret_without: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", nargs="*", default=None, help="shipped nodes; by default all of them")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--search", action="store_true", help="studies of the search, a minute each")
    parser.add_argument("--processes", type=int, default=None, help="by default one for each core")
    given = parser.parse_args()
    names = given.nodes or list(shipped_nodes())
    jobs = [
        (n, noise, seed, k) for noise in NOISES for n in names for seed in range(given.seeds) for k in (True, False)
    ]
    with Pool(given.processes) as pool:
        studies = pool.starmap(study if given.search else stream, jobs, chunksize=1)
    what = f"{BUDGET} launches of the search" if given.search else f"{CANDIDATES} launches that nothing chooses"
    print(f"{len(names)} nodes x {given.seeds} seeds, {what}, modelled\n")
    print("\n".join(_table(studies)))


def study(name: str, noise: float, seed: int, is_known: bool) -> Study:
    """Run one study, and the same one without early stops."""
    node, top = _node(name, noise)
    known = _earlier(noise, seed) if is_known else None
    bars: dict[str, tuple[float, float]] = {}

    def note(history: History, proposal: Proposal) -> None:
        for work in proposal.works if isinstance(proposal, Launches) else ():
            if stop_rule(history, work) is not None:
                found = bar(history, study_spread(history))
                bars[work.identity] = (found.below, found.margin)

    watching = ModelledStudy(node=node, budget=BUDGET, seed=seed, known_spread=known, on_proposal=note)
    watching.run()
    whole = ModelledStudy(node=node, budget=BUDGET, seed=seed, known_spread=known, stops_early=False)
    whole.run()
    times = [trial.record for trial in watching.trials if trial.record]
    return Study(
        noise=noise,
        is_known=is_known,
        watched=tuple(_watched(node, watching.trials, bars)),
        serve_s=sum(record.phase_s.get(Phase.SERVE, 0.0) for record in times),
        node_s=sum(record.wall_s for record in times),
        regret=_regret(watching, node, top.value),
        regret_without=_regret(whole, node, top.value),
    )


def stream(name: str, noise: float, seed: int, is_known: bool) -> Study:
    """Run launches that nothing chooses, each under the rule that those before it give."""
    node, top = _node(name, noise)
    known = _earlier(noise, seed) if is_known else None
    study = ModelledStudy(node=node, budget=CANDIDATES, seed=seed, known_spread=known)
    bars: dict[str, tuple[float, float]] = {}
    for work in _works(study, node, top.assignment, random.Random(f"{name}/{seed}")):
        history = study.history()
        if (rule := stop_rule(history, work)) is not None:
            found = bar(history, study_spread(history))
            bars[work.identity] = (found.below, found.margin)
            study.stop_rules[work.identity] = rule
        study.launch(work)
    times = [trial.record for trial in study.trials if trial.record]
    return Study(
        noise=noise,
        is_known=is_known,
        watched=tuple(_watched(node, study.trials, bars)),
        serve_s=sum(record.phase_s.get(Phase.SERVE, 0.0) for record in times),
        node_s=sum(record.wall_s for record in times),
        regret=math.nan,
        regret_without=math.nan,
    )


def _works(study: ModelledStudy, node: NodeModel, top: Assignment, source: random.Random) -> Iterator[Work]:
    """Yield the default, the baseline, candidates that work, and now and then the best measured one again."""
    for point, kind in ((node.default, Kind.DEFAULT), ({**node.default, **node.space.baseline}, Kind.BASELINE)):
        if (work := _work(node, point, kind)) is not None:
            yield work
    seen: set[str] = set()
    while len(study.trials) < CANDIDATES:
        history = study.history()
        if history.ranking and source.random() < REPEATED:
            best = next(trial for trial in history.trials if trial.work.key == history.ranking[0])
            yield best.work.again(Kind.REPEAT, len(history.values[history.ranking[0]]), "again")
            continue
        start = source.choice((node.default, top, None))
        work = _work(node, _changed(node, start, source), Kind.SEARCH)
        if work is not None and work.identity not in seen:
            seen.add(work.identity)
            yield work


def _changed(node: NodeModel, start: Assignment | None, source: random.Random) -> Assignment:
    """Return a random point, or one that differs from the start in up to three values."""
    names = list(node.space.parameters)
    changed = names if start is None else source.sample(names, source.randint(1, 3))
    values = {name: source.choice(node.space.parameters[name].domain) for name in changed}
    return {**(start or {}), **values}


def _work(node: NodeModel, point: Assignment, kind: Kind) -> Work | None:
    """Return the launch of a point that works for certain, or None."""
    asked = node.space.normalise(point, node.facts)
    if node.space.violation(asked, node.facts) is not None or true_value(node, asked) is None:
        return None
    resolved, _ = node.answers.resolved(asked)
    return Work(kind=kind, rung=Rung.FULL, requested=resolved, resolved=resolved)


def _watched(node: NodeModel, trials: list[Trial], bars: dict[str, tuple[float, float]]) -> Iterator[Watched]:
    best_so_far = 0.0
    for trial in trials:
        true = true_value(node, trial.work.resolved) or 0.0
        best_so_far = max(best_so_far, true if trial.works else 0.0)
        found = bars.get(trial.work.identity)
        if found is None or not trial.works or trial.record is None or trial.record.measurement is None:
            continue
        below, margin = found
        stopped = trial.record.measurement.stopped
        yield Watched(
            behind=(math.log(below) + margin - math.log(true)) / margin,
            is_near=true >= (1 - NEAR) * best_so_far,
            is_stopped=stopped is not None,
            measured_s=trial.record.phase_s[Phase.SERVE],
            saved_s=stopped.saved_s if stopped else 0.0,
        )


def _earlier(noise: float, seed: int) -> Spread:
    """Return what an earlier study would say of the noise."""
    source = random.Random(f"{noise}/{seed}")
    logs = [source.gauss(0.0, noise) for _ in range(REPEATS + 1)]
    return Spread(variance=statistics.variance(logs), freedom=REPEATS, origin="an earlier study")


def _regret(found: ModelledStudy, node: NodeModel, top: float) -> float:
    arm = summarise(found.history(), "study").best
    return 1 - (true_value(node, arm.assignment) or 0.0) / top if arm else 1.0


@lru_cache(maxsize=4)
def _node(name: str, noise: float) -> tuple[NodeModel, Best]:
    node = load_node(name)
    top = best(node)
    assert top is not None, f"nothing works on {name}"
    noisy = node.file.noise.model_copy(update={"launch_sd": noise})
    return replace(node, file=node.file.model_copy(update={"noise": noisy})), top


def _table(studies: list[Study]) -> Iterator[str]:
    header = ("noise", "spread", "under a rule", "worse by 2 margins: time saved", "all under a rule: saved")
    header += ("near the best: stopped", "serving saved", "node time saved", "median regret, with and without")
    yield "| " + " | ".join(header) + " |"
    yield "|---" * len(header) + "|"
    for noise in NOISES:
        for is_known in (True, False):
            mine = [each for each in studies if (each.noise, each.is_known) == (noise, is_known)]
            watched = [each for study in mine for each in study.watched]
            slow, near = [each for each in watched if each.behind >= 2], [each for each in watched if each.is_near]
            saved = sum(each.saved_s for each in watched)
            serve, node = sum(each.serve_s for each in mine), sum(each.node_s for each in mine)
            stopped = sum(each.is_stopped for each in near)
            cells = (
                f"{noise:.0%}",
                "known" if is_known else "own repeats",
                f"{len(watched)} launches",
                f"{_saved(slow)} of {len(slow)} launches",
                _saved(watched),
                f"{stopped} of {len(near)}",
                f"{saved / (serve + saved):.0%}",
                f"{saved / (node + saved):.1%}",
                _percent([each.regret for each in mine]) + ", " + _percent([each.regret_without for each in mine]),
            )
            yield "| " + " | ".join(cells) + " |"


def _percent(values: Sequence[float]) -> str:
    return "–" if any(map(math.isnan, values)) else f"{statistics.median(values):.1%}"


def _saved(watched: list[Watched]) -> str:
    whole = sum(each.measured_s + each.saved_s for each in watched)
    return f"{sum(each.saved_s for each in watched) / whole:.0%}" if whole else "none"


if __name__ == "__main__":
    main()
