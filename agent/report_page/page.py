"""Everything a reader gets to see, put into one HTML file that asks nothing of the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.node_time import saved_notes, saved_table, spent_table
from agent.progress import spoken
from agent.propose.history import History
from agent.redaction import redact_text
from agent.report import headline
from agent.report_page.answers import front_chart, schedule_chart
from agent.report_page.charts import history_chart, levels_chart, node_time_chart, parameter_charts
from agent.report_page.tables import by_reason, map_columns, map_rows, trial_rows
from agent.saved import times_of
from agent.savings import Counts
from agent.store.trial import Trial
from agent.summary import Arm, StudySummary, arms_of
from runners import Rung

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FOLDER = Path(__file__).parent
CONTROLS = {
    "displaylogo": False,
    "responsive": True,
    "displayModeBar": "hover",
    "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
}
"""What a reader may do with a chart; the buttons show up beside the pointer only."""
COMMANDS = 200
"""Launches whose command stands in the page; those of a larger study are in their artifact folders."""

BELOW = {
    Rung.RESOLVE: ("Resolved by the engine, without a launch", ""),
    Rung.PROBE: ("Probes", "µs a verify pass"),
    Rung.DUMMY: ("Dummy launches", ""),
}
"""Rung below the top → title of its table, and the unit of its figure; empty where it measures nothing."""


def render(summary: StudySummary, history: History, ruled_out: Counts, command: str | None) -> str:
    """Return the page of a study. Text that came from a log is escaped and free of secrets.

    Args:
        summary: The study in figures.
        history: Its trials and probes.
        ruled_out: What each dead end of the map ruled out.
        command: The command that repeats the best, or None where nothing was measured.
    """
    from jinja2 import Environment, FileSystemLoader
    from plotly.offline import get_plotlyjs

    environment = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"redact": redact_text, "spoken": spoken, "breakable": _breakable}
    dead_ends = summary.atlas.dead_ends
    rows = map_rows(dead_ends, ruled_out, times_of(history))
    return environment.get_template("page.html").render(
        summary=summary,
        headline=headline(summary),
        command=command,
        charts={title: _drawn(figure) for title, figure in charts_of(summary, history).items()},
        columns=map_columns(dead_ends),
        dead_ends=rows,
        saved_s=sum(row.saved_s for row in rows),
        launches=trial_rows(history.trials, summary, COMMANDS),
        below=[(title, unit, trial_rows(_at(history, rung), summary, 0)) for rung, (title, unit) in BELOW.items()],
        unproven=by_reason(summary.unproven),
        spent=spent_table(summary),
        saved=saved_table(summary),
        saved_notes=saved_notes(summary),
        unknown=trial_rows(summary.unknown, summary, 0),
        facts=_facts(history),
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        script=(FOLDER / "page.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
    )


def charts_of(summary: StudySummary, history: History) -> dict[str, Figure]:
    """Return title → chart, in the order in which they are read.

    What to draft at each concurrency is there where two draft lengths were measured beside the best, the front where
    there are several goals, and what mattered where enough assignments were measured to tell.
    """
    arms = arms_of(history.trials)
    if not arms:
        return {"Where the node time went": node_time_chart(summary.rungs)} if summary.rungs else {}
    answers = {}
    if summary.schedule is not None:
        answers["How many tokens to draft"] = schedule_chart(summary.schedule)
    if len(summary.goals) > 1:
        answers["The front"] = front_chart(summary, arms, history.settings.workload)
    return {
        "Every launch": history_chart(history.trials, summary),
        **answers,
        "Throughput at each concurrency": levels_chart(_named_arms(summary, arms)),
        **(parameter_charts(history, arms, summary.best.assignment, _unit(summary)) if summary.best else {}),
        "Where the node time went": node_time_chart(summary.rungs),
    }


def _breakable(text: object) -> str:
    """Return a text, escaped, that may be broken behind its underscores, so that columns stay narrow."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in str(text).split("_"))


def _unit(summary: StudySummary) -> str:
    return summary.goals[0].short_unit if len(summary.goals) == 1 else "geometric mean of the goals"


def _at(history: History, rung: Rung) -> list[Trial]:
    return [trial for trial in (*history.checks, *history.probes) if trial.work.rung is rung]


def _named_arms(summary: StudySummary, arms: list[Arm]) -> Mapping[str, Arm]:
    default = next((arm for arm in arms if arm.assignment == summary.default), None)
    named = {"baseline": summary.baseline, "default": default, "best": summary.best}
    return {name: arm for name, arm in named.items() if arm is not None}


def _drawn(figure: Figure) -> str:
    """Return a chart as a part of the page, which carries plotly's script once."""
    from plotly.io import to_html

    drawn: str = to_html(figure, include_plotlyjs=False, full_html=False, config=CONTROLS)
    return drawn


def _facts(history: History) -> dict[str, str]:
    """Return the facts of the node that fit on a line."""
    return {name: str(value) for name, value in sorted(history.facts.items()) if isinstance(value, str | int | float)}
