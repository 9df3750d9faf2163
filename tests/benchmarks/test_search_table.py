"""A file of results is read as it was written, so that a benchmark goes on where it was stopped."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.benchmarks.search_table import Run, line_of, runs_in, tables


def study(seed: int, regret: float, hours: float, strategy: str = "agent") -> Run:
    """Return one study of a node."""
    return Run(
        job="7", node="node", seed=seed, strategy=strategy, budget=40, regret=regret, best_regret=regret, hours=9.0,
        hours_to=(hours, math.inf), known=0.01, confirming=0.2, probing=0.05, failures=3, cpu_s=1.5,
    )  # fmt: skip


def test_what_was_written_is_read_back_but_for_a_line_that_was_cut_off(tmp_path: Path) -> None:
    """A benchmark may be killed while it writes."""
    runs = [study(0, 0.03, 2.0), study(1, 0.2, math.inf)]
    path = tmp_path / "studies.jsonl"
    path.write_text("".join(map(line_of, runs)) + line_of(study(2, 0.1, 1.0))[:-20])
    assert runs_in(path) == runs


def test_figures_of_another_version_are_refused_with_their_line(tmp_path: Path) -> None:
    """Studies that were counted otherwise do not belong into one table."""
    path = tmp_path / "studies.jsonl"
    path.write_text(line_of(study(0, 0.03, 2.0)) + '{"node": "node"}\n')
    with pytest.raises(ValueError, match=r"studies\.jsonl:2"):
        runs_in(path)


def test_a_median_among_studies_that_never_came_close_says_so() -> None:
    """Hours are censored: most studies here never reach the first regret, and none the second."""
    text = tables([study(0, 0.03, 2.0), study(1, 0.2, math.inf), study(2, 0.2, math.inf)])
    row = next(line for line in text.splitlines() if line.startswith("| agent |"))
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[2].startswith("20.0 [")
    assert cells[5].startswith("unreached [") and cells[6] == "unreached [unreached, unreached]"
    assert "67% / 100%" in row
