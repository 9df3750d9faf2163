"""kill -9 of the agent, then resume: nothing lost, nothing doubled, nothing left. The benchmark kills ten times."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.kill_resume import Finding, run


def test_a_study_killed_twice_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Exactly the budget, no identity twice, no process left, MLflow as the storage, the same proposals."""
    found = run(kills=2, budget=14, seed=3, folder=tmp_path)
    assert found == Finding(
        kills=found.kills,
        closed=14,
        identities_run_twice=0,
        processes_left=0,
        runs_that_sync_had_to_touch=0,
        same_proposals=True,
    )
