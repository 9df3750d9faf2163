"""When a launch may end its load early, as clearly slower than the incumbent.

All requests of a launch share what sets it apart from other launches, so more of them make nobody surer of an
assignment: the bar lies below the incumbent by a margin of at least three standard deviations of the difference between
launches, as repeats showed them. Few repeats know their own spread badly, and a wider margin makes up for it (Student's
t). README.md of this package has the rule in full and how often it errs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agent.propose import sums
from agent.propose.history import History
from agent.spread import Spread, pooled, spread_within
from agent.store.trial import Kind, Work
from runners import Rung, StopRule
from runners.student import t_quantile

LEAST_FREEDOM = 3.0
"""Repeats, of this study or of earlier ones on the same node, before anything is stopped."""
LEAST_SDS = 3.0
TAIL = 0.005
"""Chance that a launch as good as the incumbent falls below the bar, where few repeats say how far launches differ."""
LEAST_SD = 0.01
"""Repeats that agree better than this do so by chance."""
LUCK = 2.0
"""Variance of the incumbent's mean, as a multiple of what its launches alone have: it is the luckiest of several."""
HOPE = 1.25
"""The most that a level that is not measured yet may turn out to be, as a multiple of the best rate seen there."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What separates a clearly slower launch from the others."""

    below: float
    """The objective below which it is one, in tokens per second."""
    margin: float
    """How far that is below the incumbent, in logarithms."""


def stop_rule(history: History, work: Work) -> StopRule | None:
    """Return the rule under which work is launched, or None where its load is served whole.

    Only the first launch of a candidate may end early: the baseline, repeats and what the user asked for are measured.
    """
    is_candidate = work.kind is Kind.SEARCH and work.rung is Rung.FULL and work.requested not in _asked(history)
    spread = study_spread(history)
    if not can_stop(history) or not is_candidate or spread.freedom < LEAST_FREEDOM:
        return None
    hopes = _hopes(history)
    if not hopes:
        return None
    return StopRule(below=bar(history, spread).below, hopes=hopes)


def study_spread(history: History) -> Spread:
    """Return how much launches differ, by the study's own repeats and by what was known before it."""
    own = spread_within(history.values.of_several)
    return pooled([own, *([history.known_spread] if history.known_spread else [])])


def margin(spread: Spread, launches: int) -> float:
    """Return how far below an incumbent, in logarithms, a launch has to be for the difference not to be chance.

    Args:
        spread: How much launches differ; with some freedom.
        launches: How many launches the incumbent's mean is of.
    """
    factor = max(LEAST_SDS, t_quantile(1 - TAIL, spread.freedom))
    return factor * max(spread.sd, LEAST_SD) * math.sqrt(1 + LUCK / launches)


def bar(history: History, spread: Spread) -> Bar:
    """Return the objective below which a launch is clearly slower than some assignment that was measured."""
    highest = history.values.best_of_once
    best = {} if highest is None else {1: math.log(highest)}  # of those with as many launches, only the best can set it
    for launches in history.values.of_several:
        best[launches.number] = max(launches.middle, best.get(launches.number, -math.inf))
    gaps = {number: margin(spread, number) for number in best}
    bars = (Bar(math.exp(middle - gaps[number]), gaps[number]) for number, middle in best.items())
    return max(bars, key=lambda each: each.below)


def can_stop(history: History) -> bool:
    """Return whether launches of the study may be stopped early at all.

    A rate of tokens has to decide, which the load itself limits: goodput is never more than the whole rate.

    Several goals have no single bar, and requests that arrive by themselves bring their own rate.
    """
    goals, workload = history.settings.goals, history.settings.workload
    is_rate = len(goals) == 1 and goals[0].figure.endswith("tok_per_s") and workload.arrival_per_s is None
    return history.settings.stop_early and is_rate


def _asked(history: History) -> list[object]:
    return [history.space.normalise(assignment, history.facts) for assignment in history.asked]


def _hopes(history: History) -> dict[int, float]:
    """Return, for each level of the objective, more than any launch reached there; nothing where none was measured."""
    best = sums.best_rates(history)
    only = history.settings.goals[0].level
    wanted = history.settings.workload.levels if only is None else (only,)
    return {level: HOPE * best[level] for level in wanted} if all(best.get(level) for level in wanted) else {}
