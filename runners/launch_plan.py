"""What an engine's runner tells the life cycle about its engine, and what its load client may ask back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runners.contract import Measurement, Phase
from runners.phases import PhasePattern


class Watch:
    """What a load client may know of the launch that it measures, and what it tells it."""

    def __init__(
        self, environment: Mapping[str, str], log_path: Path, temp_dir: Path, pids: Callable[[], list[int]]
    ) -> None:
        """Begin with a launch that is running.

        Args:
            environment: the engine's whole environment, with the launch's cookie.
            log_path: the engine's log.
            temp_dir: the launch's folder for temporary files.
            pids: returns the engine's living processes.
        """
        self.environment = environment
        self.log_path = log_path
        self.temp_dir = temp_dir
        self.pids = pids
        self.beat_at: float | None = None
        """Value of the monotonic clock when the client last saw the engine produce something."""
        self._over = threading.Event()
        self._ready = threading.Event()

    @property
    def is_over(self) -> bool:
        """True once the engine is dead or about to be stopped: there is nothing left to measure."""
        return self._over.is_set()

    @property
    def is_ready(self) -> bool:
        """True once the client said that the engine serves."""
        return self._ready.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, but not beyond the end of the launch; return whether it is over."""
        return self._over.wait(timeout_s)

    def end(self) -> None:
        """Tell the client that the launch is over."""
        self._over.set()

    def ready(self) -> None:
        """Tell the launch that the engine served a request. From here on only `beat` counts as progress."""
        self.beat()
        self._ready.set()

    def beat(self) -> None:
        """Tell the launch that the engine produced something for the client."""
        self.beat_at = time.monotonic()

    def note(self, text: str) -> None:
        """Write a line of ours into the engine's log, where the reader of a failure and the classifier look."""
        append_line(self.log_path, text)


def append_line(log_path: Path, text: str) -> None:
    """Append a line to a log that the engine is writing, on a line of its own."""
    with log_path.open("ab") as log:
        log.write(f"\n{text}\n".encode())


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """What differs between engines in the life of a launch."""

    phase_patterns: tuple[PhasePattern, ...] = ()
    serve: Callable[[Watch], Measurement | None] | None = None
    """For a server: called in a thread once `serve_from` is reached; when it returns, the engine is asked to stop.
    Without it, the launch ends when the engine ends by itself. What the engine does to it (a refused connection) it
    has to turn into evidence; whatever it raises while the engine lives is taken for our own fault and raised."""
    serve_from: Phase = Phase.READY
    """Phase from which `serve` is called. With an earlier one than READY it is `Watch.ready` that begins READY."""
    is_cancelled: Callable[[], bool] = lambda: False
    """Asked every 50 ms; True stops the launch."""
    cwd: Path | None = None
    """Working directory of the engine; None is that of this process, where the user's relative paths hold."""
    drain_s: float = 2.0
    """How long other processes of the launch may go on after the engine's leader ended."""
    decisive_grace_s: float = 1.0
    """How long a launch goes on after a decisive line, so that the rest of the traceback gets into the log."""
    essential: str | None = None
    """Regular expression for the titles of the processes without which the engine cannot serve."""
    death_grace_s: float = 5.0
    """How long the engine may go on after an essential process died, to say why and to end by itself."""
    port: int | None = None
    """TCP port on which the engine is told to listen."""
    has_faulthandler: bool = False
    """Whether its processes are Python's, which write their stacks into the log when they get SIGABRT (a hang's last
    resort where py-spy is not to be had)."""
    tools: tuple[Path, ...] = field(default_factory=tuple)
    """Folders in which to look for py-spy as well: those of the engine's own environment."""
