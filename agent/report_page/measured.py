"""The measured arms of a study as an Optuna study in memory, which Optuna's own charts are drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.propose.history import History
from agent.propose.improve import Improvement
from agent.store.distributions import distributions_of
from agent.summary import Arm
from search_spaces import Assignment, SearchSpace

if TYPE_CHECKING:
    from optuna import Study

DRAWN_ARMS = 400
"""Arms that charts of single parameters show, best first: more are a blot, and take seconds to draw."""


def measured_study(space: SearchSpace, arms: Sequence[Arm]) -> Study:
    """Return the arms as completed trials, one for each, valued with the mean of its launches.

    Parameters that were the same in all of them are left out: they have no effect to show.
    """
    import optuna
    from optuna.trial import create_trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # else it announces a study that nobody asked for
    study = optuna.create_study(direction="maximize")
    ranked = sorted(arms, key=lambda arm: arm.mean, reverse=True)[:DRAWN_ARMS]
    varied = [name for name in space.parameters if len({repr(arm.assignment[name]) for arm in ranked}) > 1]
    all_distributions = distributions_of(space)
    distributions = {name: all_distributions[name] for name in varied}
    for arm in ranked:
        params = {name: arm.assignment[name] for name in varied}
        study.add_trial(create_trial(params=params, distributions=distributions, value=arm.mean))
    return study


def importances(history: History, arms: Sequence[Arm], best: Assignment) -> dict[str, float]:
    """Return parameter → share of the objective that the worst of its values costs against the best of them.

    Of the values that were measured, each set alone in the best assignment, as the search's own model expects it
    (`agent.propose.surrogate`); largest first, empty where too little was measured. Statistics that compare good arms
    with all arms (PED-ANOVA and its like) say little here: the arms of a search stand close around the best.
    """
    if len(arms) < MIN_ARMS:
        return {}
    model, found = Improvement(history), {}
    for name in history.space.parameters:
        values = {repr(arm.assignment[name]): arm.assignment[name] for arm in arms}
        if len(values) > 1:
            points = [history.space.normalise({**best, name: value}, history.facts) for value in values.values()]
            expected = model.expected(points)
            found[name] = 1.0 - math.exp(min(expected) - max(expected))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


MIN_ARMS = 4
"""Fewer measured arms than this say nothing about a parameter."""
