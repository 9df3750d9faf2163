"""Tells a launch that works in silence from one that hangs: by the CPU time, the reading and the processes below it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from runners.processes import ProcessKey, ProcessStat, descendants, read_bytes

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
IDLE_SHARE = 0.02
"""CPU share of one process below which it counts as idle: threads that wake up to look at a flag use about 1 %."""
_READ_BYTES = re.compile(rb"^read_bytes: (\d+)", re.MULTILINE)


class Usage(NamedTuple):
    """What one process has used since it began."""

    cpu_ticks: int
    bytes_read: int
    """From storage; a page fault in a mapped file counts, since weights are read in that way."""


class ActivityMeter:
    """Compares what the processes below `root` have used with what they had used at the last call."""

    def __init__(self, root: int, clock: Callable[[], float]) -> None:
        """Begin with nothing seen, so that the first sample is activity."""
        self.seen: set[ProcessKey] = set()
        """Every process that was ever sampled."""
        self._root = root
        self._clock = clock
        self._sampled_at = clock()
        self._usage: dict[ProcessKey, Usage] = {}

    def sample(self) -> bool:
        """Return whether the launch did anything since the last sample worth calling work."""
        now = self._clock()
        elapsed_s, self._sampled_at = now - self._sampled_at, now
        before, self._usage = self._usage, {stat.key: _usage(stat) for stat in descendants(self._root)}
        self.seen.update(self._usage)
        if self._usage.keys() != before.keys():
            return True
        ticks = sum(usage.cpu_ticks - before[key].cpu_ticks for key, usage in self._usage.items())
        bytes_read = sum(usage.bytes_read - before[key].bytes_read for key, usage in self._usage.items())
        return ticks > elapsed_s * TICKS_PER_S * IDLE_SHARE * len(before) or bytes_read > 0


def _usage(stat: ProcessStat) -> Usage:
    found = _READ_BYTES.search(read_bytes(f"/proc/{stat.pid}/io") or b"")
    return Usage(stat.cpu_ticks, int(found[1]) if found else stat.major_faults)
