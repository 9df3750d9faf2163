"""What others would do with the same launches: random, one factor at a time, and Optuna's TPE without a map.

All of them launch the engine's default first, never launch an assignment twice, and declare the best single launch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agent.outcome import Outcome
from runners import EngineSettings, Rung, RunRecord, TrialRequest, Workload
from search_spaces import Assignment, NodeModel, assignment_key
from tests.support.modelled_study import judged

ASKS = 200
"""Proposals in a row that may be known before a strategy gives up."""


@dataclass
class Launches:
    """What a strategy launched on a node, in order."""

    node: NodeModel
    budget: int
    seed: int
    tried: dict[str, tuple[Assignment, Outcome, RunRecord]] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        """True when no launch is left."""
        return len(self.tried) >= self.budget

    def resolved(self, candidate: Assignment) -> Assignment:
        """Return the assignment in normal form."""
        return self.node.space.normalise(candidate, self.node.facts)

    def is_allowed(self, point: Assignment) -> bool:
        """Return whether the point breaks no relation and was not launched yet."""
        return self.node.space.violation(point, self.node.facts) is None and assignment_key(point) not in self.tried

    def launch(self, point: Assignment) -> Outcome:
        """Launch a point."""
        key = assignment_key(point)
        num_ranks = int(str(self.node.facts["num_ranks"]))
        request = TrialRequest(
            study="plain",
            trial=len(self.tried),
            identity=f"{key}/first/0",
            rung=Rung.FULL,
            settings=EngineSettings(engine="replay", num_ranks=num_ranks, device="cuda"),
            assignment=point,
            workload=Workload(seed=self.seed),
            cookie="c",
            environment={},
            artifact_dir="/nowhere",
        )
        outcome, record = judged(self.node, request)
        self.tried[key] = (point, outcome, record)
        return outcome


def randomly(launches: Launches) -> None:
    """Launch points at random."""
    generator = random.Random(launches.seed)
    parameters = launches.node.space.parameters.items()
    for _ in range(ASKS * launches.budget):
        if launches.is_spent:
            return
        point = launches.resolved({name: generator.choice(each.domain) for name, each in parameters})
        if launches.is_allowed(point):
            launches.launch(point)


def one_factor_at_a_time(launches: Launches) -> None:
    """Change one parameter after the other, in a random order, and keep what is better; then begin again."""
    generator = random.Random(launches.seed)
    best, best_value = launches.node.default, 0.0
    while not launches.is_spent:
        before = len(launches.tried)
        names = list(launches.node.space.parameters)
        generator.shuffle(names)
        for name in names:
            for value in launches.node.space.parameters[name].domain:
                point = launches.resolved({**best, name: value})
                if launches.is_spent or not launches.is_allowed(point):
                    continue
                outcome = launches.launch(point)
                if (outcome.value or 0.0) > best_value:
                    best, best_value = point, outcome.value or 0.0
        if len(launches.tried) == before:
            return


def tpe(launches: Launches, *, failed_as_pruned: bool) -> None:
    """Ask Optuna's TPE, multivariate and seeded, and tell it failures as FAIL or as PRUNED."""
    import optuna
    from optuna.trial import TrialState

    from agent.store.distributions import distributions_of

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=launches.seed, multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = distributions_of(launches.node.space)
    for point in _asked(launches, study, distributions):
        trial, candidate = point
        outcome = launches.launch(candidate)
        if outcome.value is not None:
            study.tell(trial, outcome.value)
        else:
            study.tell(trial, state=TrialState.PRUNED if failed_as_pruned else TrialState.FAIL)


def _asked(launches: Launches, study, distributions) -> Iterator[tuple[object, Assignment]]:  # type: ignore[no-untyped-def]
    from optuna.trial import TrialState

    study.enqueue_trial(launches.node.default)
    refused = 0
    while not launches.is_spent and refused < ASKS:
        trial = study.ask(distributions)
        candidate = launches.resolved(dict(trial.params))
        if launches.is_allowed(candidate):
            refused = 0
            yield trial, candidate
        else:
            refused += 1
            study.tell(trial, state=TrialState.FAIL)


STRATEGIES: dict[str, Callable[[Launches], None]] = {
    "random": randomly,
    "one factor at a time": one_factor_at_a_time,
    "TPE, failures told FAIL": lambda launches: tpe(launches, failed_as_pruned=False),
    "TPE, failures told PRUNED": lambda launches: tpe(launches, failed_as_pruned=True),
}
