"""Keeps the garbage collector away from what stays: the closed trials of a study, and what was added up over them.

Python's collector looks at every container there is each time that a quarter more of them has grown old (CPython 3.11,
"Design of the garbage collector"): with ten thousand trials in memory that takes about a second, in the middle of a
proposal, and nearly nothing of it is garbage. So at moments of its own the loop collects what is garbage and sets the
rest aside (`gc.freeze`), and the collector goes on with what is younger.

What was set aside and is dropped later is freed as ever, by its reference count, unless it is part of a cycle. A few
histories and maps are, so that some of that would stay for good. Therefore all is taken back and looked at each time
that the study has doubled: its cost a trial does not grow, and what stays unfreed is never more than the few cycles
that were alive at one of these moments.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 50_000
"""Containers that are new before the collector looks at them (Python 3.11: 700). A proposal makes thousands, and nearly
all of them are freed by their reference counts; each look costs more, the more memory a study holds."""
EACH = 256
"""Changes of trials (each is opened and closed) after which what is younger is looked at and set aside."""


class LongLived:
    """What was set aside of one study."""

    def __init__(self) -> None:
        self._set_aside_at, self._looked_at = 0, 0
        """When younger things were set aside last, and when all was looked at."""

    def grown(self, version: int) -> None:
        """Take in how many changes of trials the study has seen by now; look and set aside where it is time for it.

        Args:
            version: As the store counts them (`StudyStore.version`), with what was stored before this agent began.
        """
        if version < self._set_aside_at + EACH:
            return
        if version >= 2 * self._looked_at:
            gc.unfreeze()
            self._looked_at = version
        gc.collect()
        gc.freeze()
        self._set_aside_at = version


@contextmanager
def set_aside() -> Iterator[LongLived]:
    """Set aside what stays while a study runs; afterwards, all of it is the collector's again."""
    usual = gc.get_threshold()
    gc.set_threshold(YOUNG, *usual[1:])
    try:
        yield LongLived()
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
