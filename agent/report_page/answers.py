"""Charts of the study's own answers: what to draft at each concurrency, and the front of several goals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.front import is_feasible, mean_figures
from agent.report_page.charts import BLUE, GREY, dressed
from agent.schedule import Cell, Schedule
from agent.summary import Arm, StudySummary
from runners import Workload

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def schedule_chart(schedule: Schedule) -> Figure:
    """Return tokens per second over the draft length, a line for each concurrency, relative to no speculation there.

    Whiskers are the intervals of the cells where they are known; the best length of each concurrency is marked.
    """
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for level in schedule.levels:
        cells = sorted(level.cells, key=lambda cell: cell.drafted)
        unit = next((cell.tok_per_s for cell in cells if cell.drafted == 0), cells[0].tok_per_s)
        whiskers = {"type": "data", "array": [_above(cell, unit) for cell in cells], "thickness": 1}
        whiskers["arrayminus"] = [_below(cell, unit) for cell in cells]
        figure.add_trace(
            Scatter(
                x=[cell.drafted for cell in cells],
                y=[cell.tok_per_s / unit for cell in cells],
                text=[f"{cell.tok_per_s:.1f} tok/s, {cell.acceptance_length:.2f} tokens a pass" for cell in cells],
                error_y=whiskers,
                name=f"concurrency {level.concurrency}",
                mode="lines+markers",
                marker={"size": [13 if cell.drafted == level.drafted else 7 for cell in cells]},
                hovertemplate="%{x} drafted: %{y:.2f}×<br>%{text}<extra></extra>",
            )
        )
    figure.add_hline(y=1.0, line_dash="dash", line_color=GREY)
    figure.update_xaxes(tickformat="d", dtick=1)
    return dressed(figure, "drafted tokens (0: no speculation)", "× no speculation")


def front_chart(summary: StudySummary, arms: Sequence[Arm], workload: Workload) -> Figure:
    """Return the measured arms by the first two goals; the front stands out, what breaks a limit is hollow."""
    from plotly.graph_objects import Figure, Scatter

    front = {found.arm.first.number for found in summary.front}
    figure = Figure()
    for is_front, name in ((False, "other arms"), (True, "front")):
        shown = [arm for arm in arms if (arm.first.number in front) is is_front]
        figures = [mean_figures(arm.trials) for arm in shown]
        feasible = [is_feasible(arm.trials, workload.slo) for arm in shown]
        figure.add_trace(
            Scatter(
                x=[each[0] for each in figures],
                y=[each[1] for each in figures],
                text=[summary.changes(arm.assignment) for arm in shown],
                name=name,
                mode="markers",
                marker={
                    "size": 12 if is_front else 8,
                    "color": BLUE if is_front else GREY,
                    "symbol": ["circle" if keeps else "circle-open" for keeps in feasible],
                },
                hovertemplate="%{x:.4g}, %{y:.4g}<br>%{text}<extra></extra>",
            )
        )
    first, second = (goal.name for goal in summary.goals[:2])
    return dressed(figure, first, second)


def _above(cell: Cell, unit: float) -> float:
    return (cell.high - cell.tok_per_s) / unit if math.isfinite(cell.high) else 0.0


def _below(cell: Cell, unit: float) -> float:
    return (cell.tok_per_s - cell.low) / unit if math.isfinite(cell.low) else 0.0
