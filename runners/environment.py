"""The environment of an engine: the user's own, cleaned, marked with the trial's cookie, and without telemetry."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from runners.contract import Command, TrialRequest
from runners.cookies import COOKIE_VARIABLE, KEEP_ENVIRON, SESSION_VARIABLE

DROPPED_PREFIX = "RAY_"
"""An engine must not take itself for a part of the Ray cluster that happens to run it."""
DEFAULTS: Mapping[str, str] = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # A log that ends in a crash is the evidence: nothing may be stuck in a buffer, and a native abort shows its stack.
    "PYTHONUNBUFFERED": "1",
    "PYTHONFAULTHANDLER": "1",
}
"""What is set unless the user has set it."""
OFFLINE: Mapping[str, str] = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
"""Set unless the user has decided about HF_HUB_OFFLINE: a slow hub must not look like a slow engine."""
MAX_TEMP_ROOT_LENGTH = 40
"""Socket paths may be 107 bytes long in all, and engines put UUIDs and more into them."""


def engine_environment(request: TrialRequest, command: Command, temp_dir: Path) -> dict[str, str]:
    """Return the whole environment of the engine.

    It is built from the user's environment in the request and not from that of this process, which may be a Ray
    worker with OMP_NUM_THREADS=1 and more that the user never asked for.
    """
    user = {name: value for name, value in request.environment.items() if not name.startswith(DROPPED_PREFIX)}
    offline = {} if "HF_HUB_OFFLINE" in user else OFFLINE
    marks = {COOKIE_VARIABLE: request.cookie, "TMPDIR": str(temp_dir), **KEEP_ENVIRON}
    if SESSION_VARIABLE in os.environ:
        marks[SESSION_VARIABLE] = os.environ[SESSION_VARIABLE]
    return {**DEFAULTS, **offline, **user, **command.env, **marks}


def added_environment(request: TrialRequest, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what was set on top of the user's environment."""
    return {name: value for name, value in environment.items() if request.environment.get(name) != value}


def make_temp_dir(user_environment: Mapping[str, str]) -> Path:
    """Create a short folder for temporary files and sockets, where the user wants them unless that path is long."""
    wanted = user_environment.get("TMPDIR", "")
    root = wanted if 0 < len(os.fsencode(wanted)) <= MAX_TEMP_ROOT_LENGTH and Path(wanted).is_dir() else "/tmp"  # noqa: S108
    return Path(tempfile.mkdtemp(prefix="agent-", dir=root))


def remove_temp_dir(temp_dir: Path) -> None:
    """Remove the folder and whatever the engine left in it."""
    shutil.rmtree(temp_dir, ignore_errors=True)
