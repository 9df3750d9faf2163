"""Whether the Ray of a study lives, and a new one in the place of one that died or failed."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import NodeUnusableError
from agent.places import Places
from agent.propose.order import Stop
from runners.ray_pool import PoolError, RayPool

MOST_DEATHS = 3
"""Times in a row, without a launch in between, that Ray is replaced."""


@dataclass
class RayLives:
    """Counts the lives of Ray."""

    pool: RayPool
    places: Places
    deaths: int = 0
    """In a row."""
    failure: str = ""
    """What a call of Ray's failed with, until it is replaced."""

    def trouble(self) -> str:
        """Return what is wrong with Ray, in words; empty while nothing is."""
        daemon = self.pool.dead_daemon
        return self.failure if daemon is None else f"Ray's {daemon} died"

    def replace(self, trouble: str) -> Stop | None:
        """Put a new Ray in the place of the one in trouble; return why the study stops where that is not to be had."""
        self.failure = ""
        self.deaths += 1
        if self.deaths > MOST_DEATHS:
            return Stop(f"{trouble}, {self.deaths} times in a row", resumable=True, node_unusable=True)
        try:
            self.places.restart()
        except (PoolError, NodeUnusableError) as error:
            return Stop(str(error), resumable=True, node_unusable=True)
        return None
