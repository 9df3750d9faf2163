"""How true, minimal and complete the map is on nodes with planted dead ends, and what it costs to learn.

    python -m tests.benchmarks.dead_end_map --nodes 20

On each generated node, 40 fixed random assignments are launched; then only the map's own experiments run, until none
is left. A confirmed dead end is true when every sampled assignment in it fails with its reason, and minimal when it
is one of the planted ones. Times are of one process on an otherwise idle core.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.deadends.dead_end import DeadEnd
from agent.deadends.observation import trial_label
from agent.propose import experiments, second_launch
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Condition, NodeModel, matches_all
from search_spaces.node_generator import generate
from search_spaces.node_parts import PlantedFailure
from tests.benchmarks.look_alikes import generate_with
from tests.support.modelled_study import ModelledStudy

SAMPLES, INSIDE = 40, 200
MOST_EXPERIMENTS = 400
ALLOWED = {1: 2, 2: 4, 3: 8}
"""Size of a conjunction → experiments within which it should be found."""


@dataclass
class Tally:
    """Counts over all nodes."""

    confirmed: int = 0
    true: int = 0
    minimal: int = 0
    hit: int = 0
    found: int = 0
    flaky_confirmed: int = 0
    nodes: int = 0
    experiments: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Size of a found conjunction → for each, the experiments on failures of that cause, audits included."""
    in_vain: int = 0
    """Experiments on flaky failures, and on causes that were not found."""
    repeats: int = 0
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--look-alikes", type=int, default=0, help="further flaky failures that look like planted ones")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    tally = Tally()
    for seed in range(given.first, given.first + given.nodes):
        measure(generate_with(seed, given.look_alikes) if given.look_alikes else generate(seed), tally)
    print(f"nodes {tally.nodes}, confirmed {tally.confirmed}, hit by the {SAMPLES} samples {tally.hit}")
    print(f"true {tally.true / max(1, tally.confirmed):.3f}  minimal {tally.minimal / max(1, tally.confirmed):.3f}")
    print(f"found of those hit {tally.found / max(1, tally.hit):.3f}  flaky ones confirmed {tally.flaky_confirmed}")
    for size, numbers in sorted(tally.experiments.items()):
        mean, most, within = statistics.fmean(numbers), max(numbers), sum(each <= ALLOWED[size] for each in numbers)
        print(
            f"experiments for {size} condition(s): median {statistics.median(numbers)}, mean {mean:.2f}, most {most}; "
            f"{within} of {len(numbers)} within {ALLOWED[size]}; {sorted(numbers)}"
        )
    print(f"experiments on flaky failures and on what was not found: {tally.in_vain}")
    print(f"second launches {tally.repeats}; seconds a node, median {statistics.median(tally.seconds):.2f}")
    if given.verbose:
        print("\n".join(tally.notes))


def measure(node: NodeModel, tally: Tally) -> None:
    """Learn the map of one node and add what it is worth."""
    began = time.perf_counter()
    study = ModelledStudy(node=node, budget=10_000)
    for point in samples(node):
        study.launch(Work(kind=Kind.SEARCH, rung=Rung.FULL, requested=point, resolved=point))
    hit = {failure.name for failure in causes_met(node, study) if not failure.is_flaky}
    explore(study)
    tally.seconds.append(time.perf_counter() - began)
    tally.nodes += 1
    atlas = study.history().atlas
    planted = {f.name: f for f in node.file.failures if not f.is_flaky}
    equal: dict[str, DeadEnd] = {}
    for found in atlas.confirmed:
        tally.confirmed += 1
        problem = untrue(node, found)
        tally.true += problem is None
        name = next((name for name, failure in planted.items() if is_equal(node, found, failure)), None)
        tally.minimal += name is not None
        if name is not None:
            equal[name] = found
        if problem is not None:
            tally.notes.append(f"{node.name}: not true: {found} ({found.reason.value}): {problem}")
            tally.notes += _support(node, study, found)
        elif name is None:
            tally.notes.append(f"{node.name}: not minimal: {found} ({found.reason.value})")
        tally.flaky_confirmed += name is None and any(
            f.is_flaky and is_equal(node, found, f) for f in node.file.failures
        )
    tally.hit += len(hit)
    tally.found += len(hit & set(equal))
    for name in sorted(hit - set(equal)):
        when = {k: (w.values or (w.at_least, w.at_most)) for k, w in planted[name].when.items()}
        tally.notes.append(f"{node.name}: not found: {planted[name].reason} {when} {planted[name].rung}")
    spent = Counter(_subjects(node, study, equal))
    for name in equal:
        tally.experiments[len(planted[name].when)].append(spent[name])
    tally.in_vain += sum(number for name, number in spent.items() if name not in equal)
    tally.repeats += sum(t.work.kind is Kind.CONFIRM and not t.work.about for t in study.trials)


def samples(node: NodeModel) -> Iterator[Assignment]:
    """Yield the fixed random assignments of a node, each in normal form and allowed, after the default."""
    generator = random.Random(f"samples/{node.name}")
    found: dict[str, Assignment] = {str(node.default): node.default}
    while len(found) < SAMPLES + 1:
        point = {name: generator.choice(each.domain) for name, each in node.space.parameters.items()}
        point = node.space.normalise(point, node.facts)
        if node.space.violation(point, node.facts) is None:
            found.setdefault(str(point), point)
    yield from found.values()


def explore(study: ModelledStudy) -> None:
    """Run what the map asks for until it asks for nothing more."""
    for _ in range(MOST_EXPERIMENTS):
        history = study.history()
        work = second_launch.of_probes(history) or second_launch.propose(history)
        rungs = (Rung.PROBE, Rung.FULL)
        wanted = itertools.chain.from_iterable(step(history, rung) for step in experiments.STEPS for rung in rungs)
        work = work or next(wanted, None)
        if work is None:
            return
        study.launch(work)


def untrue(node: NodeModel, found: DeadEnd) -> str | None:
    """Return an assignment inside the dead end that does not fail with its reason, or None when all sampled ones do."""
    generator = random.Random(f"inside/{found.id}")
    parameters = node.space.parameters
    for _ in range(INSIDE):
        point = {name: generator.choice(each.domain) for name, each in parameters.items()}
        for condition in found.conditions:
            domain = parameters[condition.parameter].domain
            inside = [value for value in domain if condition.matches({condition.parameter: value})]
            point[condition.parameter] = generator.choice(inside)
        point = node.space.normalise(point, node.facts)
        if node.space.violation(point, node.facts) or not matches_all(found.conditions, point):
            continue
        resolved, _ = node.answers.resolved(point, told_only=True)
        if resolved != point:
            continue
        effective, _ = node.answers.resolved(point)
        failures = [f for f in node.answers.matching(effective, "full") if not f.is_flaky]
        if not any(failure.reason == found.reason.value for failure in failures):
            return f"{point} {'fails otherwise' if failures else 'works'}"
    return None


def _support(node: NodeModel, study: ModelledStudy, found: DeadEnd) -> Iterator[str]:
    """Yield the planted failures of a dead end's reason, and each launch that it rests on with what struck there."""
    for failure in (each for each in node.file.failures if each.reason == found.reason.value):
        when = {name: wanted.values or (wanted.at_least, wanted.at_most) for name, wanted in failure.when.items()}
        yield f"    {failure.name} {when}{f' {failure.probability}' if failure.is_flaky else ''}"
    for trial in (each for each in (*study.trials, *study.probes) if trial_label(each) in found.support):
        yield f"    {trial_label(trial)} {_cause_of(node, trial) or 'by chance'}: {trial.work.resolved}"


def _subjects(node: NodeModel, study: ModelledStudy, found: Mapping[str, DeadEnd]) -> Iterator[str]:
    """Yield for each experiment the name of the planted failure whose cause it looked for, or `""` for a flaky one."""
    causes = {trial_label(trial): _cause_of(node, trial) for trial in (*study.trials, *study.probes)}
    stages = {stage: name for label, name in causes.items() for stage in experiments.stages_of(label)}
    stages |= {f"where does {each.id} begin?": name for name, each in found.items()}
    stages |= {f"does {each.id} hold here too?": name for name, each in found.items()}
    for trial in (*study.trials, *study.probes):
        if trial.work.about:
            yield stages.get(trial.work.stage, "")


def _cause_of(node: NodeModel, trial: Trial) -> str:
    """Return the planted failure that struck in a trial, `""` where it was a flaky one or none."""
    failure = trial.outcome.failure if trial.outcome else None
    effective, _ = node.answers.resolved(trial.work.resolved)
    planted = (each for each in node.answers.matching(effective, trial.work.rung.value) if not each.is_flaky)
    first = next(planted, None)
    if first is None or failure is None:
        return ""
    is_it = (first.reason, first.phase) == (failure.reason.value, failure.phase.value)
    return first.name if is_it else ""


def causes_met(node: NodeModel, study: ModelledStudy) -> Iterator[PlantedFailure]:
    for trial in study.trials:
        if trial.is_failed:
            effective, _ = node.answers.resolved(trial.work.resolved)
            yield from node.answers.matching(effective, "full")[:1]


def is_equal(node: NodeModel, found: DeadEnd, planted: PlantedFailure) -> bool:
    """Return whether the conditions take in the same values of the same parameters."""
    by_name: dict[str, Condition] = {condition.parameter: condition for condition in found.conditions}
    if found.reason.value != planted.reason or set(by_name) != set(planted.when):
        return False
    return all(
        {repr(value) for value in node.space.parameters[name].domain if by_name[name].matches({name: value})}
        == {repr(value) for value in node.space.parameters[name].domain if wanted.holds_for(value)}
        for name, wanted in planted.when.items()
    )


if __name__ == "__main__":
    main()
