"""The two daemons without which a local Ray is nothing: are they alive?

Ray itself takes ten seconds to say that its raylet died, and a minute to end the whole process when its GCS did
(seen on 2.60).
"""

from __future__ import annotations

import os

from runners.processes import ProcessKey, descendants, is_running, read_bytes

DAEMONS = {"raylet": b"/raylet/raylet", "GCS": b"/gcs/gcs_server"}
"""What we call a daemon → how its program's path ends."""


class RayDaemons:
    """The daemons below this process, as they were when Ray had just come up."""

    def __init__(self) -> None:
        """Look for them among the processes that this one started."""
        self._keys: dict[str, ProcessKey] = {}
        for stat in descendants(os.getpid()):
            program = (read_bytes(f"/proc/{stat.pid}/cmdline") or b"").split(b"\0", 1)[0]
            for name, end in DAEMONS.items():
                if program.endswith(end):
                    self._keys[name] = stat.key

    def dead(self) -> str | None:
        """Return the name of a daemon that died, or None."""
        return next((name for name, key in self._keys.items() if not is_running(key)), None)
