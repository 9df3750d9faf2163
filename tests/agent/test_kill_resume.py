"""Kill anything of a working agent, then resume: nothing lost, doubled or left. The benchmark kills 200 times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.benchmarks.kill_courses import courses
from tests.benchmarks.kill_resume import run


def test_a_study_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Exactly the budget, no identity twice, no process left, MLflow as the storage, undisturbed proposals."""
    short = replace(courses("synthetic", None), budget=4)
    found = run(kills=2, course=short, seed=3, folder=tmp_path)
    assert found.kills == 2
    assert found.problems == []
    assert (found.processes_left, found.runs_that_sync_had_to_touch) == (0, 0)
