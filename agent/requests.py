"""A stored trial → the request its runner needs."""

from __future__ import annotations

from collections.abc import Mapping

from agent.classify.registry import decisive_patterns
from agent.store.manifest import Manifest
from agent.store.trial import Trial
from runners import Deadlines, TrialRequest

DEADLINES = Deadlines(phase_default_s=120.0, no_progress_s=45.0)


def request_of(trial: Trial, manifest: Manifest, environment: Mapping[str, str]) -> TrialRequest:
    """Return the request of a trial.

    Args:
        trial: The stored trial.
        manifest: Its study's description.
        environment: The user's environment, as the agent found it.
    """
    space, assignment = manifest.space, trial.work.resolved
    return TrialRequest(
        study=trial.study,
        trial=trial.number,
        identity=trial.work.identity,
        rung=trial.work.rung,
        settings=manifest.settings.engine,
        assignment=assignment,
        options=space.options(assignment),
        variables=space.environment(assignment),
        workload=manifest.settings.workload,
        deadlines=DEADLINES,
        decisive_patterns=decisive_patterns(),
        cookie=trial.cookie,
        environment=environment,
        artifact_dir=trial.artifact_dir,
    )
