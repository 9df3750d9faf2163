"""The measured arms of a study as an Optuna study in memory, which Optuna's own charts are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.store.distributions import distributions_of
from agent.summary import Arm
from search_spaces import SearchSpace

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


def importances(study: Study) -> dict[str, float]:
    """Return parameter → share of the variation that it explains, largest first; empty where too little was measured.

    PED-ANOVA (Watanabe et al., 2023), as Optuna has it: it compares the better arms with all of them.
    """
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    if len(study.trials) < MIN_ARMS or not study.trials[0].params:
        return {}
    return dict(get_param_importances(study, evaluator=PedAnovaImportanceEvaluator()))


MIN_ARMS = 4
"""Fewer measured arms than this say nothing about a parameter."""
