"""What an engine's runner tells the life cycle about its engine, and what its load client may ask back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runners.contract import Measurement
from runners.phases import PhasePattern


class Watch:
    """What a load client may know of the launch that it measures."""

    def __init__(self) -> None:
        """Begin with a launch that is running."""
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """True once the engine is dead or about to be stopped: there is nothing left to measure."""
        return self._over.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, but not beyond the end of the launch; return whether it is over."""
        return self._over.wait(timeout_s)

    def end(self) -> None:
        """Tell the client that the launch is over."""
        self._over.set()


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """What differs between engines in the life of a launch."""

    phase_patterns: tuple[PhasePattern, ...] = ()
    serve: Callable[[Watch], Measurement | None] | None = None
    """For a server: called in a thread once the log says READY; when it returns, the engine is asked to stop.
    Without it, the launch ends when the engine ends by itself. What the engine does to it (a refused connection) it
    has to turn into evidence; whatever it raises while the engine lives is taken for our own fault and raised."""
    is_cancelled: Callable[[], bool] = lambda: False
    """Asked every 50 ms; True stops the launch."""
    cwd: Path | None = None
    """Working directory of the engine; None is that of this process, where the user's relative paths hold."""
    drain_s: float = 2.0
    """How long other processes of the launch may go on after the engine's leader ended."""
    decisive_grace_s: float = 1.0
    """How long a launch goes on after a decisive line, so that the rest of the traceback gets into the log."""
