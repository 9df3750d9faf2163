"""What the user decides about a study. Frozen, strict, and stored with the study, so that a resume needs no options."""

from __future__ import annotations

from pydantic import Field

from agent.goals import OUTPUT, Goal
from runners import EngineSettings, Frozen, Rung, Workload


class StudySettings(Frozen):
    """Everything that defines a study besides its search space."""

    name: str
    engine: EngineSettings
    space: str
    """Catalogue name or path the space came from, for the reader; its content is stored beside it."""
    workload: Workload = Workload()
    goals: tuple[Goal, ...] = (OUTPUT,)
    """What is searched for; several goals have a front of assignments of which none is better in all."""
    seed: int = 0
    """Every random choice of the study hangs on it."""
    probe_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Largest share of node time that the rungs below the top may take together."""
    start_rung: Rung = Rung.RESOLVE
    """The cheapest rung that is climbed from."""
    max_rung: Rung = Rung.FULL
    """The dearest rung that is climbed to."""
    probe_sizes: tuple[int, ...] = ()
    """Message sizes of probes in bytes, in the place of those of the model and the workload."""
    contender_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Share of the budget kept for repeating the baseline and the best few."""
    stop_early: bool = True
    """Whether a launch that is clearly slower than the incumbent ends its load early."""
