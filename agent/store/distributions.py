"""Search space → Optuna distributions. Every value that may ever be tried is declared from the start.

Optuna refuses a categorical parameter whose choices change later, so what is not allowed yet is locked by the filter
of the search, never left out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from search_spaces import Parameter, SearchSpace

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def distributions_of(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return one distribution for each parameter of the space."""
    return {name: _distribution(parameter) for name, parameter in space.parameters.items()}


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if parameter.range is not None:
        return IntDistribution(parameter.range.low, parameter.range.high, step=parameter.range.step)
    return CategoricalDistribution(parameter.domain)
