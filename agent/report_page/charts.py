"""The charts of the report, each a plotly figure made of stored trials. Colours follow the page (page.js)."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent.outcome import OutcomeKind
from agent.propose.history import History
from agent.report_page.measured import importances, measured_study
from agent.rungs import RungCost
from agent.store.trial import Kind, Trial
from agent.summary import Arm, StudySummary
from runners import Rung
from search_spaces import Assignment

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MARKS = {
    Kind.DEFAULT: "diamond",
    Kind.BASELINE: "square",
    Kind.SEARCH: "circle",
    Kind.CONFIRM: "triangle-up",
    Kind.REPEAT: "circle-open",
}
GREEN, ORANGE, RED, GREY, BLUE = "#2a9d5c", "#d9822b", "#d64545", "#8a94a0", "#2f6fd0"
ARM_COLOURS = {"baseline": GREY, "default": BLUE, "best": GREEN}
OUTCOME_COLOURS = {"measured": GREEN, "slower": ORANGE, "failed": RED, "interrupted": GREY, "not_probed": GREY}
HEIGHT = 360
MOST_PARAMETERS = 12
"""Bars that can be read in one chart."""
LEAST_SHARE = 0.005
"""What matters less than this gets no bar."""
TIME_UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def history_chart(trials: Sequence[Trial], summary: StudySummary) -> Figure:
    """Return every launch over its number: what it measured, the best so far, and what failed, along the bottom."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    measured = [trial for trial in trials if trial.is_measured]
    for kind in MARKS:
        of_kind = [trial for trial in measured if trial.work.kind is kind]
        if of_kind:
            figure.add_trace(
                Scatter(
                    x=[trial.number for trial in of_kind],
                    y=[_value(trial) for trial in of_kind],
                    text=[summary.changes(trial.work.resolved) for trial in of_kind],
                    name=kind.value,
                    mode="markers",
                    marker={"symbol": MARKS[kind], "size": 9, "color": BLUE},
                    hovertemplate="#%{x}: %{y:.1f} tok/s<br>%{text}<extra></extra>",
                )
            )
    best = list(itertools.accumulate((_value(trial) for trial in measured), max))
    numbers = [trial.number for trial in measured]
    line = {"shape": "hv", "color": GREEN, "width": 1.5}
    figure.add_trace(Scatter(x=numbers, y=best, name="best single launch so far", mode="lines", line=line))
    _add_failures(figure, trials, summary)
    if summary.baseline is not None:
        figure.add_hline(y=summary.baseline.mean, line_dash="dash", line_color=GREY, annotation_text="baseline")
    unit = summary.goals[0].short_unit if len(summary.goals) == 1 else "geometric mean of the goals"
    return dressed(figure, "launch", unit)


def _add_failures(figure: Figure, trials: Sequence[Trial], summary: StudySummary) -> None:
    from plotly.graph_objects import Scatter

    failed = [trial for trial in trials if trial.is_failed and trial.outcome and trial.outcome.failure]
    if failed:
        reasons = [
            f"{trial.outcome.failure.reason.value}<br>{summary.changes(trial.work.resolved)}"
            for trial in failed
            if trial.outcome and trial.outcome.failure
        ]
        figure.add_trace(
            Scatter(
                x=[trial.number for trial in failed],
                y=[0.0] * len(failed),
                text=reasons,
                name="failed",
                mode="markers",
                marker={"symbol": "x", "size": 8, "color": RED},
                hovertemplate="#%{x}: %{text}<extra></extra>",
            )
        )


def parameter_charts(history: History, arms: Sequence[Arm], best: Assignment, unit: str) -> dict[str, Figure]:
    """Return title → chart: which parameters mattered, and the two that mattered most, alone and together."""
    from optuna.visualization import plot_contour, plot_slice

    ranked = importances(history, arms, best)
    if not ranked:
        return {}
    study = measured_study(history.space, arms)
    found = {"Which parameters mattered": _importance_chart(ranked)}
    two = [name for name in ranked if name in study.trials[0].params][:2]
    if two:
        alone = plot_slice(study, params=two, target_name=unit)
        alone.update_traces(marker={"color": BLUE, "showscale": False, "size": 8})  # by default the colour is the rank
        alone.for_each_trace(lambda trace: trace.update(x=[_unquoted(value) for value in trace.x]))
        found[f"{' and '.join(two)}, each alone"] = dressed(alone)
    if len(two) > 1:
        together = plot_contour(study, params=two, target_name=unit)
        found[f"{' and '.join(two)}, together"] = dressed(together)
    return found


def _unquoted(value: object) -> object:
    """Return a word without the quotes that Optuna's axes put around it."""
    return value.strip("'") if isinstance(value, str) else value


def _importance_chart(ranked: Mapping[str, float]) -> Figure:
    """Return a bar for each parameter, the longest on top."""
    from plotly.graph_objects import Bar, Figure

    some = [item for index, item in enumerate(ranked.items()) if index < 2 or item[1] >= LEAST_SHARE]
    shown = dict(reversed(some[:MOST_PARAMETERS]))
    bars = Bar(
        x=list(shown.values()),
        y=list(shown),
        orientation="h",
        marker_color=BLUE,
        text=[f"{share:.0%}" for share in shown.values()],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:.1%}<extra></extra>",
    )
    figure = dressed(Figure(bars), "estimated loss at its worst value", "")
    figure.update_xaxes(tickformat=".0%", range=[0.0, 1.15 * max(*ranked.values(), 0.01)])
    figure.update_yaxes(automargin=True)
    return figure


def levels_chart(arms: Mapping[str, Arm]) -> Figure:
    """Return the throughput of a few named arms at each concurrency level; whiskers span their launches."""
    from plotly.graph_objects import Bar, Figure

    figure = Figure()
    for name, arm in arms.items():
        rates: dict[int, list[float]] = defaultdict(list)
        for trial in arm.trials:
            if trial.record is not None and trial.record.measurement is not None:
                for level in trial.record.measurement.levels:
                    rates[level.concurrency].append(level.output_tok_per_s)
        means = [sum(values) / len(values) for values in rates.values()]
        above = [max(values) - mean for values, mean in zip(rates.values(), means, strict=True)]
        below = [mean - min(values) for values, mean in zip(rates.values(), means, strict=True)]
        whiskers = {"type": "data", "array": above, "arrayminus": below, "color": GREY}
        x, colour = [str(level) for level in rates], ARM_COLOURS.get(name)
        figure.add_trace(Bar(name=name, x=x, y=means, error_y=whiskers, marker_color=colour))
    figure.update_layout(barmode="group")
    return dressed(figure, "requests in flight", "output tokens/s")


def node_time_chart(rungs: Mapping[Rung, RungCost]) -> Figure:
    """Return the node time by rung and by what came of it."""
    from plotly.graph_objects import Bar, Figure

    figure = Figure()
    longest = max((cost.node_s for cost in rungs.values()), default=0.0)
    unit, in_unit = next((each for each in TIME_UNITS if longest >= 2 * each[1]), TIME_UNITS[-1])
    for outcome in (kind.value for kind in OutcomeKind):
        seconds = [cost.by_outcome_s.get(outcome, 0.0) for cost in rungs.values()]
        if any(seconds):
            named, colour = [rung.value for rung in rungs], OUTCOME_COLOURS[outcome]
            times = [each / in_unit for each in seconds]
            figure.add_trace(
                Bar(
                    name=outcome.replace("_", " "),
                    y=named,
                    x=times,
                    orientation="h",
                    marker_color=colour,
                    hovertemplate=f"%{{y}}: %{{x:.3g}} {unit}",
                )
            )
    figure.update_layout(barmode="stack", height=130 + 50 * len(rungs), showlegend=True)
    return dressed(figure, f"node time in {unit}", "", height=None)


def dressed(figure: Figure, x: str | None = None, y: str | None = None, height: int | None = HEIGHT) -> Figure:
    """Give a chart the page's looks: no background of its own, and room for a legend above."""
    figure.update_layout(
        title=None,
        template="plotly_white",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 60, "r": 20, "t": 30, "b": 50},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
        font={"family": "system-ui, sans-serif", "size": 13},
    )
    if height is not None:
        figure.update_layout(height=height)
    if x is not None:
        figure.update_xaxes(title_text=x)
    if y is not None:
        figure.update_yaxes(title_text=y)
    return figure


def _value(trial: Trial) -> float:
    return trial.outcome.value if trial.outcome is not None and trial.outcome.value is not None else 0.0
