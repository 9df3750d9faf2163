"""Sees at once when a process dies that is not ours to reap: a worker, whose parent may need seconds to say so."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Iterable

from runners.processes import ProcessKey, ProcessStat, is_running, open_pidfd, read_bytes


class DeathWatch:
    """Watches the processes of an engine whose titles match a pattern."""

    def __init__(self, titles: str) -> None:
        """Watch nothing yet; `titles` is searched at the beginning of the command lines."""
        self._titles = re.compile(titles)
        self._watched: dict[int, tuple[ProcessKey, str]] = {}
        """Descriptor of the process → the process and its title."""
        self._known: set[ProcessKey] = set()
        self._poller = select.poll()

    def look(self, family: Iterable[ProcessStat]) -> None:
        """Begin to watch the processes of the family that have such a title by now and are not watched yet."""
        for stat in family:
            if stat.key in self._known or stat.is_zombie:
                continue
            title = _title(stat.pid)
            if self._titles.match(title):
                self._watch(stat.key, title)

    def dead(self) -> list[str]:
        """Return who died since the last call, as `title (pid N)`. Costs one system call."""
        found = []
        for descriptor, _ in self._poller.poll(0):
            key, title = self._watched.pop(descriptor)
            self._poller.unregister(descriptor)
            os.close(descriptor)
            found.append(f"{title} (pid {key.pid})")
        return found

    def close(self) -> None:
        """Stop watching. May be called again."""
        for descriptor in self._watched:
            self._poller.unregister(descriptor)
            os.close(descriptor)
        self._watched.clear()

    def _watch(self, key: ProcessKey, title: str) -> None:
        try:
            descriptor = open_pidfd(key.pid)
        except ProcessLookupError:
            return
        if descriptor is None:  # an old kernel: then the engine's own report of the death has to do
            return
        if not is_running(key):
            os.close(descriptor)
            return
        self._known.add(key)
        self._watched[descriptor] = (key, title)
        self._poller.register(descriptor, select.POLLIN)


def _title(pid: int) -> str:
    """Return the first word of the command line, which is the title of a process that gave itself one."""
    raw = (read_bytes(f"/proc/{pid}/cmdline") or b"").split(b"\0", 1)[0]
    return raw.decode(errors="replace").strip().split(" ")[0]
