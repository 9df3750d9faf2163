"""What Ray reads from the environment of the process that starts it, or connects to one that is there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from functools import cache
from types import ModuleType

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's own memory monitor would kill a trial that is only loading weights; host memory is the classifier's matter.
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # A minute after its GCS died Ray ends the whole process, with exit code 1 and without a word (seen on 2.60): under
    # load that is before everything is closed. Who waits for Ray here has a watch of its own.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "600",
}
"""Unless the user set them."""
OWN = {
    # Every process of a local Ray would keep the history of the last hundred thousand tasks, for a dashboard that is
    # not there (seen on 2.60).
    "RAY_task_events_report_interval_ms": "0",
}
"""For a Ray of our own, whatever the environment says."""
AUTH_MODE, AUTH_TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
"""Source: Ray 2.60 _private/authentication; earlier versions without tokens do not read them."""


OF_WORKERS = "RAY_RAYLET_PID"
"""Whose life a process of Ray's hangs on when it loses its raylet. It ends itself at once, with exit code 1, where that
process is dead; without the variable, where its own parent is `init` (seen on 2.60). An agent under nohup, a service
manager or a container's init has such a parent, and is no worker: it hangs on nobody's life but its own."""


def set_environment(*, is_own: bool) -> dict[str, str | None]:
    """Set the variables of this process for a Ray of our own or of somebody else; return what is to be restored."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    own = {**OWN, AUTH_MODE: "token", AUTH_TOKEN: _own_token()} if is_own else {}
    own |= {OF_WORKERS: str(os.getpid())}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    return before


def token_problem(ray: ModuleType) -> str | None:
    """Return why a Ray of our own would refuse this process, or None: Ray reads the mode once, when it is imported.

    Source: Ray 2.60 `_raylet.get_authentication_mode`, which earlier versions do not have.
    """
    mode = getattr(ray._raylet, "get_authentication_mode", None)
    if mode is None or mode() == ray._raylet.AuthenticationMode.TOKEN:
        return None
    return f"this process imported Ray without {AUTH_MODE}=token: set that before, or search in a process of its own"


def restore_environment(before: Mapping[str, str | None]) -> None:
    """Set the variables to what they were; None takes one away."""
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@cache
def _own_token() -> str:
    """One for the process: Ray reads its token once. Left alone it would keep one in a file that others may read."""
    return secrets.token_hex(32)
