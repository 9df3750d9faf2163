"""Whether the artifact folder can take what a launch writes. A launch that cannot log says nothing about its engine."""

from __future__ import annotations

import os
from pathlib import Path

from agent.home import folder_problem

FEWEST_BYTES = 1 << 20
"""Free space below which nothing is launched: a log and a result must have room."""


def disk_problem(folder: Path) -> str | None:
    """Return why a launch could not write into the folder (or the nearest one above it that exists), or None."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    status = os.statvfs(nearest)
    if status.f_flag & os.ST_RDONLY:
        return f"{nearest} is on a read-only file system"
    free = status.f_bavail * status.f_frsize
    if free < FEWEST_BYTES:
        return f"the disk of {nearest} is full ({free >> 10} KiB are free)"
    problem = folder_problem(nearest)
    return None if problem is None else f"{nearest} cannot be written: {problem}"
