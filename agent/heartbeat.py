"""The owner of a study says in the storage that it is alive, so that another host can tell when it no longer is.

No clocks are compared: a host that wants the study watches whether the count goes on. On the owner's own host nobody
needs this, since there its process can be looked at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from agent.errors import StorageError
from agent.store.study_store import BEAT, OWNER, StudyStore
from agent.store.trial import Lease
from runners import Frozen

BEAT_S = 15.0
"""Time between two beats."""
MISSED_BEATS = 4
"""Beats that must be missed before another host takes the study over."""
SILENCE_S = MISSED_BEATS * BEAT_S
LOOK_S = 1.0


class Beat(Frozen):
    """One sign of life."""

    owner: Lease
    number: int
    at: datetime
    """By the owner's clock: for readers, which do not wait. Taking a study over hangs on `number` alone."""


class Heartbeat:
    """The owner's side: a thread that beats, and notices when somebody else owns the study."""

    def __init__(self, store: StudyStore, lease: Lease, every_s: float = BEAT_S) -> None:
        """Beat once and start the thread.

        Raises:
            StorageError: the first beat cannot be stored.
        """
        self._store, self._lease, self._every_s = store, lease, every_s
        self._number = 0
        self._beaten_at = time.monotonic()
        self._stopped = threading.Event()
        self.lost_to: str | None = None
        """Who took the study over, in words, once that was seen."""
        self.beat()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Store one beat, unless the study has another owner by now."""
        found = self._store.get_attribute(OWNER)
        owner = None if found is None else Lease.model_validate(found)
        if owner != self._lease:
            self.lost_to = "nobody known" if owner is None else f"process {owner.pid} on {owner.host}"
            return
        self._number += 1
        now = Beat(owner=self._lease, number=self._number, at=datetime.now(UTC))
        self._store.set_attribute(BEAT, now.model_dump(mode="json"))
        self._beaten_at = time.monotonic()

    def taker(self) -> str | None:
        """Return who took the study over, or None while it is ours.

        Looks anew where no beat could be stored for two beats' time: the storage was away, and others may have
        counted our silence.

        Raises:
            StorageError: it still is.
        """
        if self.lost_to is None and time.monotonic() - self._beaten_at > 2 * self._every_s:
            self.beat()
        return self.lost_to

    def close(self) -> None:
        """Stop beating."""
        self._stopped.set()
        self._thread.join(LOOK_S)

    def _run(self) -> None:
        while self.lost_to is None and not self._stopped.wait(self._every_s):
            try:
                self.beat()
            except StorageError:  # the loop meets the same storage, and says so; a beat more or less decides nothing
                continue


def last_beat(store: StudyStore, owner: Lease) -> Beat | None:
    """Return the owner's last beat, or None where it never gave one."""
    found = store.get_attribute(BEAT)
    beat = None if found is None else Beat.model_validate(found)
    return beat if beat is not None and beat.owner == owner else None


def is_silent(store: StudyStore, owner: Lease, pause: Callable[[float], None] = time.sleep) -> bool | None:
    """Watch an owner that cannot be looked at: True when its beats stopped, False when they go on.

    Takes a minute for an owner that is dead, at most 15 s for one that lives. None at once where it never beat.
    """
    first = last_beat(store, owner)
    if first is None:
        return None
    for _ in range(round(SILENCE_S / LOOK_S)):
        pause(LOOK_S)
        beat = last_beat(store, owner)
        if beat is not None and beat.number != first.number:
            return False
    return True


def was_heard_of_lately(store: StudyStore, owner: Lease) -> bool:
    """Return whether an owner's last beat is young by our clock, for readers: nothing is taken over on this ground."""
    beat = last_beat(store, owner)
    return beat is None or datetime.now(UTC) - beat.at < timedelta(seconds=SILENCE_S)
