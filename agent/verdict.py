"""Whether the winner beats the baseline: launch-level values → interval of the ratio → verdict. Pure statistics.

How it is reckoned, and why so, is told in verdict.md. In short: values are compared in logarithms, so that differences
are ratios; the value for which an assignment was chosen is left out, since it was chosen for being large; the spread
from launch to launch is pooled over all assignments, since two to five launches say too little each, and with what all
launches of the study say of it; and one critical value holds for all assignments that were repeated at once, since the
winner is the best of them.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent.spread import Spread, pooled, spread_of
from runners.student import t_quantile

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

LEVEL = 0.95
"""How often the interval holds the true ratio, for all repeated assignments together."""
EARLY_LEVEL = 0.99
"""The same for stopping before the last repeat: repeated looks at growing data find something now and then, and a
bound this strict leaves the last look its level (the rule of Haybittle and Peto)."""
SMALLEST_GAIN = 0.02
"""Share below which a gain is none: nobody changes a working configuration for less."""
POINTS, TAIL, REACH, STEP = 48, 1e-7, 7.0, 0.25
"""Of the quadratures behind a critical value: points over the spread, how much of its distribution is left out at
either end, and how far and in what steps the baseline's error is looked at, in standard deviations. It is then good to
1e-4 of itself."""
NEAR = 0.01
"""How far beyond its bounds a critical value is looked for, as a share."""


class Verdict(StrEnum):
    """What may be said of the winner against the baseline."""

    GAIN = "gain"
    NO_GAIN = "no gain"
    NOT_SEPARABLE = "not separable within the budget"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One assignment against the baseline."""

    ratio: float
    """Its objective divided by the baseline's, 1.25 for 25 % more: of geometric means over launches."""
    low: float
    high: float
    """Ends of the interval of the ratio."""
    level: float
    num_launches: int
    """Launches of the assignment that count: repeats, made after it was chosen."""
    num_baseline: int
    num_compared: int
    """Assignments that were repeated, for all of which the interval holds at once."""
    spread: Spread

    @property
    def verdict(self) -> Verdict:
        """What the interval allows to say."""
        if self.low > 1.0:
            return Verdict.GAIN
        return Verdict.NO_GAIN if self.high < 1.0 + SMALLEST_GAIN else Verdict.NOT_SEPARABLE

    def words(self) -> str:
        """Return the interval and what it rests on, as a reader needs it."""
        launches = f"{self.num_launches} repeats against {self.num_baseline} launches of the baseline"
        if self.num_launches == 1:
            launches = launches.replace("repeats", "repeat")
        among = f", the best of {self.num_compared} repeated" if self.num_compared > 1 else ""
        return (
            f"{self.low:.2f}× to {self.high:.2f}× ({self.level:.0%} interval; {launches}{among}; launches spread by "
            f"{self.spread.sd:.1%})"
        )


def comparisons(
    baseline: Sequence[float],
    repeats: Mapping[str, Sequence[float]],
    others: Iterable[Sequence[float]] = (),
    level: float = LEVEL,
    learned: Spread | None = None,
) -> dict[str, Comparison]:
    """Return each repeated assignment's comparison with the baseline; none where the spread is unknown.

    Args:
        baseline: Values of all launches of the baseline: it was not chosen for any of them.
        repeats: Key of an assignment → values of the launches made after it was chosen.
        others: Further groups of launches of one assignment each, which only tell of the spread.
        level: How often all intervals are to hold the true ratios at once.
        learned: What launches that were not repeated say of the spread; it adds to what repeats say, and never
            stands for it.
    """
    compared = {key: values for key, values in repeats.items() if values}
    if not baseline or not compared:
        return {}
    spread = spread_of([baseline, *compared.values(), *others])
    if not spread.freedom:
        return {}
    if learned is not None:
        spread = pooled([spread, learned])
    numbers = tuple(sorted(len(values) for values in compared.values()))
    critical = critical_value(len(baseline), numbers, spread.freedom, level)
    found = {}
    for key, values in compared.items():
        ratio = _mean_log(values) - _mean_log(baseline)
        reach = critical * spread.sd * math.sqrt(1 / len(values) + 1 / len(baseline))
        found[key] = Comparison(
            ratio=math.exp(ratio),
            low=_exp(ratio - reach),
            high=_exp(ratio + reach),
            level=level,
            num_launches=len(values),
            num_baseline=len(baseline),
            num_compared=len(compared),
            spread=spread,
        )
    return found


@lru_cache(maxsize=512)
def critical_value(num_baseline: int, numbers: tuple[int, ...], freedom: float, level: float) -> float:
    """Return how many standard errors reach to either side so that all intervals hold at once with this probability.

    The groups share the baseline and the spread. Given both they are independent, so that the probability is a product
    of normal ones, averaged over both by Gaussian quadrature (Dunnett, "A multiple comparison procedure for comparing
    several treatments with a control", Journal of the American Statistical Association 50, 1955; here the groups may
    have different sizes). It lies between Student's value for one group and Bonferroni's for all of them.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    errors, weights = _shared_errors(num_baseline, max(numbers), freedom)
    groups = Counter(numbers)

    def lacking(critical: float) -> float:
        return level - float(_all_hold(critical, num_baseline, groups, *errors) @ weights)

    least, most = (float(stdtrit(freedom, 1.0 - (1.0 - level) / 2 / number)) for number in (1, len(numbers)))
    return float(brentq(lacking, least * (1.0 - NEAR), most * (1.0 + NEAR), xtol=1e-6))


def _shared_errors(num_baseline: int, largest: int, freedom: float) -> tuple[tuple[Table, Table], Table]:
    """Return errors of the baseline's mean and of the spread, as shares of the true spread, and their weights.

    The more launches the largest group has, the more sharply the baseline's error decides whether its interval holds.
    """
    import numpy as np
    from scipy.special import chdtri

    means = np.linspace(-REACH, REACH, math.ceil(2 * REACH / STEP * max(1.0, math.sqrt(largest / num_baseline))))
    mean_weights = np.exp(-(means**2) / 2)
    low, high = (math.log(float(chdtri(freedom, tail)) / freedom) / 2 for tail in (1.0 - TAIL, TAIL))
    places, place_weights = np.polynomial.legendre.leggauss(POINTS)
    logs = (low + high) / 2 + (high - low) / 2 * places  # the smallest spreads decide where few repeats tell of it
    log_density = freedom * logs - freedom * np.exp(2 * logs) / 2
    spread_weights = place_weights * np.exp(log_density - log_density.max())
    weights = np.outer(mean_weights / mean_weights.sum(), spread_weights / spread_weights.sum())
    errors = np.repeat(means / math.sqrt(num_baseline), POINTS), np.tile(np.exp(logs), len(means))
    return errors, weights.ravel()


def _all_hold(critical: float, num_baseline: int, groups: Mapping[int, int], means: Table, spreads: Table) -> Table:
    """Return how likely the intervals of all groups (launches → how many such groups) hold, given these errors."""
    import numpy as np
    from scipy.special import ndtr

    holds = np.ones_like(means)
    for number, times in groups.items():
        reach = critical * spreads * math.sqrt(1 / number + 1 / num_baseline)
        root = math.sqrt(number)
        holds *= (ndtr((means + reach) * root) - ndtr((means - reach) * root)) ** times
    return holds


def interval_of_mean(values: Sequence[float], spread: Spread, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of one assignment's geometric mean, given the pooled spread; everything where it is unknown.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("an interval needs a value")
    if not spread.freedom:
        return 0.0, math.inf
    middle = _mean_log(values)
    reach = t_quantile(0.5 + level / 2, spread.freedom) * spread.sd / math.sqrt(len(values))
    return _exp(middle - reach), _exp(middle + reach)


def _mean_log(values: Sequence[float]) -> float:
    return statistics.fmean(math.log(value) for value in values)


def _exp(value: float) -> float:
    """Two launches tell so little of the spread that an end may lie beyond every number."""
    return math.exp(min(value, 700.0))
