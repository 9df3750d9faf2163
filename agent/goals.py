"""What a study searches for: one figure of a measurement, or several at once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from runners import Frozen, LevelMeasurement, Measurement

Figure = Literal[
    "output_tok_per_s",
    "goodput_tok_per_s",
    "goodput_req_per_s",
    "ttft_ms_p50",
    "ttft_ms_p99",
    "tpot_ms_p50",
    "tpot_ms_p99",
    "e2e_ms_p50",
    "e2e_ms_p99",
]
FIGURES: tuple[str, ...] = get_args(Figure)
UNITS: Mapping[str, str] = {
    "output_tok_per_s": "output tokens per second",
    "goodput_tok_per_s": "output tokens per second within the limits",
    "goodput_req_per_s": "requests per second within the limits",
}
_WRITTEN = re.compile(r"([a-z0-9_]+?)(?:@(\d+))?")


class Goal(Frozen):
    """One figure that is to be as large as possible, or a latency that is to be as small as possible."""

    figure: Figure
    level: int | None = None
    """Concurrency at which it counts; None: the geometric mean over all levels."""

    @property
    def name(self) -> str:
        """The goal as it is written: `tpot_ms_p50@8`."""
        return self.figure if self.level is None else f"{self.figure}@{self.level}"

    @property
    def is_latency(self) -> bool:
        """True where less is better."""
        return "_ms_" in self.figure

    @property
    def short_unit(self) -> str:
        """The unit as it stands behind a number."""
        return "ms" if self.is_latency else "req/s" if self.figure == "goodput_req_per_s" else "tok/s"

    @property
    def unit(self) -> str:
        """The unit in words."""
        what = UNITS.get(self.figure, f"{self.figure.replace('_ms_', ' ')}, milliseconds")
        where = "geometric mean over the concurrency levels" if self.level is None else f"at concurrency {self.level}"
        return f"{what}, {where}"

    def of(self, measurement: Measurement) -> float | None:
        """Return the figure of a measurement, in its own unit; None where it has none that can be used."""
        levels = [each for each in measurement.levels if self.level in (None, each.concurrency)]
        figures = [_figure(each, self.figure) for each in levels]
        if not figures or not all(figure is not None and math.isfinite(figure) and figure > 0 for figure in figures):
            return None
        if len(figures) == 1:
            return figures[0]
        return math.exp(math.fsum(math.log(figure) for figure in figures if figure) / len(figures))

    def merit(self, figure: float) -> float:
        """Return a figure as something of which more is better: a latency's reciprocal."""
        return 1.0 / figure if self.is_latency else figure


OUTPUT = Goal(figure="output_tok_per_s")
"""The goal of a study that names none."""


def goal_of(written: str) -> Goal:
    """Return the goal that somebody wrote.

    Raises:
        ValueError: with what is wrong.
    """
    match = _WRITTEN.fullmatch(written.strip())
    if match is None or match[1] not in FIGURES:
        raise ValueError(f"'{written}' is no objective: write one of {', '.join(FIGURES)}, perhaps with @LEVEL")
    return Goal.model_validate({"figure": match[1], "level": int(match[2]) if match[2] else None})


def figures_of(measurement: Measurement, goals: Sequence[Goal]) -> tuple[float, ...] | None:
    """Return the figure of each goal in its own unit, or None where one is missing."""
    found = [goal.of(measurement) for goal in goals]
    return tuple(figure for figure in found if figure is not None) if None not in found else None


def compromise(figures: Sequence[float], goals: Sequence[Goal]) -> float:
    """Return one figure for several goals, all alike: the geometric mean of their merits.

    Divided by the baseline's it is the mean gain; on its own it has no unit.
    """
    merits = [math.log(goal.merit(figure)) for goal, figure in zip(goals, figures, strict=True)]
    return math.exp(math.fsum(merits) / len(merits))


def in_words(value: float, figures: Sequence[float], goals: Sequence[Goal]) -> str:
    """Return an objective for a reader: `157.7 tok/s`, or each goal's figure by name."""
    if len(goals) == 1:
        return f"{value:.1f} {goals[0].short_unit}"
    return ", ".join(f"{goal.name} {figure:.4g}" for goal, figure in zip(goals, figures, strict=True))


def _figure(level: LevelMeasurement, figure: str) -> float | None:
    if figure == "output_tok_per_s":
        return level.output_tok_per_s
    if figure.startswith("goodput"):
        return _goodput(level, "output_tok_per_s" if figure == "goodput_tok_per_s" else "requests_per_s")
    name, percentile = figure.rsplit("_", 1)
    latency = getattr(level, name)
    return None if latency is None else float(getattr(latency, percentile))


def _goodput(level: LevelMeasurement, name: str) -> float | None:
    """Return a level's goodput; where nothing is good, less than a single request would have been.

    The search needs to see which of two hopeless settings is nearer to the limits, so what is left is a hundredth of
    the rate, times the share of the requests that are within the limit which is broken most.
    """
    rate = level.output_tok_per_s if name == "output_tok_per_s" else level.requests_per_s
    if level.goodput is None or rate is None:
        return None
    found = float(getattr(level.goodput, name))
    least = 0.01 * rate * max(0.01, min(level.goodput.within.values(), default=0.0))
    return max(found, least)
