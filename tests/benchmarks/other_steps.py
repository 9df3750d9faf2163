"""The agent's whole order of search, but another sampler in the place of the step that proposes launches.

Base, baseline, probes, the map's filter, repeats and experiments stay as they are: what differs is who chooses the
launches in between. Failures are told to the GP sampler as the worst value measured so far, since it knows no others.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from unittest.mock import patch

import optuna

from agent.propose import improve
from agent.propose.history import History
from agent.store.distributions import distributions_of
from agent.store.trial import Kind, Work
from search_spaces import Assignment

ASKS = 4
"""Samples that may be ruled out before TPE is asked instead."""
Step = Callable[[History], Work | None]


@contextlib.contextmanager
def launches_by(step: Step) -> Iterator[None]:
    """Let another step propose the launches, within this block."""
    with patch.object(improve, "propose", step):
        yield


def tpe(_: History) -> None:
    """Propose nothing: the order then asks Optuna's TPE, on the rows that the map leaves."""


def gp_sampler(history: History) -> Work | None:
    """Return what Optuna's GP sampler proposes first that the map does not rule out, or None."""
    if history.incumbent is None:
        return None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = distributions_of(history.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.GPSampler(
            seed=history.seed_for("gp"), n_startup_trials=2, deterministic_objective=False
        )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for point, value in _rows(history):
        study.add_trial(optuna.create_trial(params=dict(point), distributions=distributions, value=value))
    for _ in range(ASKS):
        candidate = dict(study.ask(distributions).params)
        if (work := history.admit(candidate, Kind.SEARCH, "GP sampler", base=history.incumbent)) is not None:
            return work
    return None


def _rows(history: History) -> Iterator[tuple[Assignment, float]]:
    means = {key: history.mean(key) for key in history.measured}
    yield from ((history.measured[key], mean) for key, mean in means.items())
    failed = {trial.work.key: trial.work.resolved for trial in history.trials if trial.is_failed}
    yield from ((point, min(means.values())) for key, point in failed.items() if key not in means)


STEPS: dict[str, Step] = {"agent, launches by TPE": tpe, "agent, launches by the GP sampler": gp_sampler}
