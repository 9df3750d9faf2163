"""What a study is: its settings, its space and the facts of its node. Written once, before the first trial."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from agent.deadends.dead_end import DeadEnd
from agent.settings import StudySettings
from agent.spread import Spread
from runners import Frozen
from search_spaces import SearchSpace


class Manifest(Frozen):
    """The immutable description of a study."""

    schema_version: int = 1
    settings: StudySettings
    space: SearchSpace
    facts: Mapping[str, object]
    """Facts of the node on which the study was created."""
    created_at: datetime
    inherited: tuple[DeadEnd, ...] = ()
    """Dead ends taken over from earlier studies of the storage, as they were when this one was created."""
    spread: Spread | None = None
    """How much launches of one assignment differ, as earlier studies of the storage measured it or the user stated."""
