"""A stored trial → the request its runner needs."""

from __future__ import annotations

from collections.abc import Mapping

from agent.classify.registry import decisive_patterns
from agent.store.manifest import Manifest
from agent.store.trial import Trial
from runners import Deadlines, Phase, StopRule, TrialRequest

DEADLINES = Deadlines(phase_default_s=120.0, no_progress_s=45.0)
SERVER_DEADLINES = Deadlines(
    phase_s={
        Phase.SPAWN: 300.0,  # imports from a cold disk, in three processes one after another
        Phase.INIT_DISTRIBUTED: 600.0,
        Phase.LOAD_WEIGHTS: 3600.0,
        Phase.COMPILE: 1800.0,
        Phase.CAPTURE_GRAPHS: 1800.0,  # kernels are compiled in here on a first start
        Phase.SERVE: 7200.0,
        Phase.STOP: 120.0,
    },
    phase_default_s=900.0,
    no_progress_s=120.0,
    stop_s=20.0,
)
"""For servers with real models: what hangs shows itself by silence, long before the deadline of its phase."""
SERVERS = ("sglang", "vllm")


def request_of(
    trial: Trial,
    manifest: Manifest,
    environment: Mapping[str, str],
    stop: StopRule | None = None,
    *,
    shares_node: bool = False,
) -> TrialRequest:
    """Return the request of a trial.

    Args:
        trial: The stored trial.
        manifest: Its study's description.
        environment: The user's environment, as the agent found it.
        stop: When its load may end early.
        shares_node: Whether other trials may run on its node at the same time.
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
        probe_sizes=manifest.settings.probe_sizes,
        deadlines=SERVER_DEADLINES if manifest.settings.engine.engine in SERVERS else DEADLINES,
        stop=stop,
        decisive_patterns=decisive_patterns(),
        cookie=trial.cookie,
        environment=environment,
        artifact_dir=trial.artifact_dir,
        shares_node=shares_node,
    )
