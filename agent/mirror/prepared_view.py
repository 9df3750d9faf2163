"""The runs table as a reviewer wants it: what failed, why, in which phase, and what it cost; without clicking.

MLflow keeps a view that somebody shares as an experiment tag, and a page's address names it. The content is what MLflow
3.17's own page writes there: facets of the search, columns, expanded runs.
"""

from __future__ import annotations

import json

VIEW = "trials"
TAG = f"mlflow.sharedViewState.{VIEW}"
SHOWN = {
    "tags": ("reason", "phase", "decisive_line", "dead_end"),
    "metrics": ("wall_s", "objective"),
}
"""Columns, in the order in which they are read. Status and name of a run stand there anyway."""
WIDTHS = {"tags.`reason`": 170, "tags.`phase`": 120, "tags.`decisive_line`": 320, "tags.`dead_end`": 110}
"""Of columns that need other widths than usual, in pixels."""


def prepared_view() -> str:
    """Return the value of `TAG`: failed trials first, one line each.

    Sorted by anything but time, the page shows a study's trials as lines of their own instead of closed up below it.
    Parameters are no columns: the name of a run says what it changed.
    """
    columns = [f"{kind}.`{name}`" for kind, names in SHOWN.items() for name in names]
    state = {
        "searchFilter": "tags.kind != ''",
        "orderByKey": "tags.`outcome`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": {column: WIDTHS[column] for column in columns if column in WIDTHS},
        # By default charts show the first ten runs: here those that failed, which have no figures.
        "runsHiddenMode": "SHOW_ALL",
    }
    return json.dumps(state, separators=(",", ":"))
