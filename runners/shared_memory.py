"""The segments in /dev/shm that a launch leaves behind: which are its own, and how they go away.

A killed engine leaves hundreds of megabytes there, and the next start dies of it (SIGBUS, "No space left on device").
But /dev/shm is shared with everybody, with other containers too, so a segment is removed only on evidence.
"""

from __future__ import annotations

import json
import os
import re
import stat as stat_module
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from runners.processes import ProcessKey, all_pids, read_bytes

SHM_ROOT = Path("/dev/shm")  # noqa: S108 - not a temporary file, but where the kernel shows shared memory
IPC_NAMES = re.compile(
    r"psm_|vllm_dist_|sem\.mp-|torch_|nccl-|cuda\.shm\.|sglang_|sgl_shm_|multi_tokenizer_args_|__KMP_REGISTERED_LIB_|pym-"
)
"""Names that Python, PyTorch, NCCL, CUDA, SGLang, vLLM and OpenMP give to their segments."""
INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""The namespace that sees every process of the host. Source: PROC_PID_INIT_INO in the kernel's proc_ns.h."""
LOOK_INTERVAL_S = 0.25
NOTE = "shared_memory.json"
"""File in a trial's folder with the segments that its launch uses."""


class Segment(NamedTuple):
    """One entry of /dev/shm; a name may be used again, with another inode."""

    name: str
    inode: int


class SharedMemoryGuard:
    """Knows what was in /dev/shm before a launch, finds out what the launch uses, and removes what it left."""

    def __init__(self) -> None:
        """Take note of what is there now."""
        self._before = _segments()
        self._own: set[Segment] = set()
        self._looked_at: set[Segment] = set()
        self._look_again_at = 0.0

    def has_news(self) -> bool:
        """Return whether there are new segments that `attribute` should look at, not too often."""
        if time.monotonic() < self._look_again_at:
            return False
        return bool(_segments() - self._before - self._looked_at)

    def attribute(self, pids: Iterable[int]) -> None:
        """Take the new segments that these processes of the launch have mapped or open for the launch's own."""
        self._look_again_at = time.monotonic() + LOOK_INTERVAL_S
        new = _segments() - self._before
        used = _used_inodes(pids)
        self._own.update(segment for segment in new if segment.inode in used)
        self._looked_at = new

    def note(self, path: Path) -> None:
        """Write down what the launch uses, for whoever cleans up after a runner that was killed (`remove_noted`)."""
        rows = sorted([segment.name, segment.inode] for segment in self._own)
        path.write_text(json.dumps(rows), encoding="utf-8")

    def clean(self, seen: Iterable[ProcessKey]) -> tuple[str, ...]:
        """Remove the dead launch's segments; return the names of those that could not be removed.

        Args:
            seen: processes that belonged to the launch; their pids stand in the names of some segments.
        """
        pids = {key.pid for key in seen}
        ours = [segment for segment in _segments() - self._before if self._is_ours(segment, pids)]
        if not ours:
            return ()
        used = _used_inodes(all_pids())
        return tuple(sorted(segment.name for segment in ours if segment.inode not in used and not _remove(segment)))

    def _is_ours(self, segment: Segment, pids: set[int]) -> bool:
        if segment in self._own:
            return True
        if not IPC_NAMES.match(segment.name):
            return False
        return _sees_all_processes() or not pids.isdisjoint(int(digits) for digits in re.findall(r"\d+", segment.name))


def remove_noted(path: Path) -> tuple[str, ...]:
    """Remove the segments that a killed runner had noted and that nobody uses; return their names.

    A segment is the very one only with the same inode: its name may have been taken by somebody else since.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it never launched anything, or was killed while it wrote
        return ()
    left = _segments() & {Segment(str(name), int(inode)) for name, inode in rows}
    used = _used_inodes(all_pids()) if left else set()
    return tuple(sorted(each.name for each in left if each.inode not in used and _remove(each)))


def _sees_all_processes() -> bool:
    """True when "no process uses it" can be trusted: a container may share /dev/shm with processes out of sight."""
    return os.readlink("/proc/self/ns/pid") == INITIAL_PID_NAMESPACE  # noqa: PTH115 - a name of the kernel, no path


def _segments() -> set[Segment]:
    """Return our own regular files in /dev/shm."""
    found: set[Segment] = set()
    if not SHM_ROOT.is_dir():
        return found
    for entry in os.scandir(SHM_ROOT):
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat_module.S_ISREG(stat.st_mode) and stat.st_uid == os.geteuid():
            found.add(Segment(entry.name, stat.st_ino))
    return found


def _used_inodes(pids: Iterable[int]) -> set[int]:
    """Return the inodes in /dev/shm that these processes have mapped or open.

    Not the names: glibc makes a semaphore under another name, maps it, and gives it its own only afterwards, so that
    its name never stands in /proc/PID/maps.
    """
    prefix = f"{SHM_ROOT}/".encode()
    used: set[int] = set()
    for pid in pids:
        maps = (read_bytes(f"/proc/{pid}/maps") or b"").splitlines()
        used.update(int(line.split(maxsplit=5)[4]) for line in maps if prefix in line)
        used.update(_open_inodes(pid))
    return used


def _open_inodes(pid: int) -> set[int]:
    found: set[int] = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            if os.readlink(entry.path).startswith(f"{SHM_ROOT}/"):  # noqa: PTH115 - as above
                found.add(entry.stat().st_ino)
    except OSError:
        return found  # gone, or not ours to look at
    return found


def _remove(segment: Segment) -> bool:
    try:
        (SHM_ROOT / segment.name).unlink(missing_ok=True)
    except OSError:
        return False
    return True
