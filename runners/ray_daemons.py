"""The two daemons without which a local Ray is nothing: are they alive?

Ray itself takes ten seconds to say that its raylet died. When its GCS died it waits, also while it starts, and then
ends the whole process with exit code 1 (seen on 2.60): nothing in Python can catch that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from runners.processes import ProcessKey, descendants, is_running, read_bytes

DAEMONS = {"raylet": b"/raylet/raylet", "GCS": b"/gcs/gcs_server"}
"""What we call a daemon → how its program's path ends."""
LOOK_S = 0.2
LIFE_LOOK_S = 1.0
HANG_S = 60.0
"""How long a Ray whose daemon died may go on without having been stopped."""
GRACE_S = 10.0
"""How long Ray's start may take to fail by itself once a daemon died: what it then says tells more."""


def _daemons() -> dict[ProcessKey, str]:
    """Return the living daemons below this process, with what we call them."""
    found = {}
    for stat in descendants(os.getpid()):
        program = (read_bytes(f"/proc/{stat.pid}/cmdline") or b"").split(b"\0", 1)[0]
        name = next((name for name, end in DAEMONS.items() if program.endswith(end)), None)
        if name is not None and not stat.is_zombie:
            found[stat.key] = name
    return found


def _dead(daemons: Mapping[ProcessKey, str]) -> str | None:
    return next((name for key, name in daemons.items() if not is_running(key)), None)


class RayDaemons:
    """The daemons below this process, as they were when Ray had just come up."""

    def __init__(self) -> None:
        """Look for them among the processes that this one started."""
        self._daemons = _daemons()

    def dead(self) -> str | None:
        """Return the name of a daemon that died, or None."""
        return _dead(self._daemons)


class StartWatch:
    """What is seen of the daemons while Ray starts. Those of a Ray that is being replaced may still be dying."""

    def __init__(self) -> None:
        self._earlier = frozenset(_daemons())
        self._seen: dict[ProcessKey, str] = {}

    def look(self) -> str | None:
        """Return the name of a daemon that had been started and is dead, or None."""
        self._seen |= {key: name for key, name in _daemons().items() if key not in self._earlier}
        return _dead(self._seen)


@contextmanager
def start_watched(
    lost: Callable[[str], None], grace_s: float = GRACE_S, watch: StartWatch | None = None
) -> Iterator[None]:
    """Call `lost`, from a thread of its own, with the name and story of a daemon that dies while the body starts Ray.

    The body may hang then in code that neither an exception nor a signal's handler ends: `lost` has to end the process.
    It is not called when the body ends within `grace_s` of the death.
    """
    ended, watched = threading.Event(), watch or StartWatch()

    def run() -> None:
        while not ended.wait(LOOK_S):
            if (dead := watched.look()) is not None:
                if not ended.wait(grace_s):
                    lost(f"{dead} died while Ray was starting")
                return

    watcher = threading.Thread(target=run, name="ray-start", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


class LifeWatch:
    """Ends the process when Ray hangs since something of it died, instead of a new one being put in its place.

    Any call of Ray's may do that, the one that stops it included: most of them ask the GCS.
    """

    def __init__(
        self,
        dead: Callable[[], str | None],
        lost: Callable[[str], None],
        hang_s: float = HANG_S,
        look_s: float = LIFE_LOOK_S,
    ) -> None:
        """Watch until `close`.

        Args:
            dead: Returns the name of what died, or None.
            lost: Is called from a thread of its own, with the name and story of what died; has to end the process.
            hang_s: Time from a death to `close` that is no hang.
            look_s: Time between two looks.
        """
        self._dead, self._lost, self._hang_s, self._look_s = dead, lost, hang_s, look_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ray-life", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch: Ray has stopped."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._look_s):
            if (dead := self._dead()) is not None:
                if not self._ended.wait(self._hang_s):
                    self._lost(f"{dead} died, and Ray hangs since")
                return
