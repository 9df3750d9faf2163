"""The mirror's own thread: the search hands trials over and never waits, whatever MLflow does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from agent.mirror.client import MirrorError
from agent.mirror.snapshot import StudySnapshot
from agent.store.trial import Trial

RETRY_S = 30.0
CAPACITY = 1000


class Mirror(Protocol):
    """What the thread drives; `MlflowMirror` is one."""

    def open_study(self, snapshot: StudySnapshot) -> None:
        """Get ready for trials of this study."""

    def mirror_trial(self, trial: Trial, dead_ends: Iterable[str] = ()) -> object:
        """Write one trial."""

    def sync(self, snapshot: StudySnapshot) -> object:
        """Make everything equal to the snapshot."""


class MirrorWorker:
    """Mirrors in the background, with bounded memory, and says once when it cannot.

    A failing MLflow is tried again at most every `retry_s` seconds, each time from scratch (a new look at what is
    there), so that no call that was cut in the middle leads to a second run of the same trial.
    """

    def __init__(
        self,
        make_mirror: Callable[[], Mirror],
        snapshot: StudySnapshot,
        *,
        warn: Callable[[str], None],
        repair_command: str = "agent sync",
        retry_s: float = RETRY_S,
        capacity: int = CAPACITY,
    ) -> None:
        """Start the thread, which opens the study at once.

        Args:
            make_mirror: Makes the mirror, inside the thread; called again after each failure.
            snapshot: The study as it is now.
            warn: Called from the thread, at most once for an unreachable MLflow and once for each refused trial.
            repair_command: What the user types to mirror what is missing.
            retry_s: Shortest time between two tries.
            capacity: Trials kept while MLflow is away; beyond it the oldest are left to the next `sync`.
        """
        self._make_mirror = make_mirror
        self._mirror: Mirror | None = None
        self._opening = snapshot
        self._warn = warn
        self._repair_command = repair_command
        self._retry_s = retry_s
        self._capacity = capacity
        self._changed = threading.Condition()
        self._trials: dict[int, tuple[Trial, tuple[str, ...]]] = {}
        self._snapshot: StudySnapshot | None = None
        self._left_out: set[int] = set()
        self._is_open = self._is_stopped = self._has_warned = self._is_urgent = False
        self._next_try = 0.0
        self._thread = threading.Thread(target=self._run, name="mlflow-mirror", daemon=True)
        self._thread.start()

    def trial_started(self, trial: Trial) -> None:
        """Show a trial as running. Optional: closing it is enough."""
        self._put(trial, ())

    def trial_closed(self, trial: Trial, dead_ends: Iterable[str] = ()) -> None:
        """Mirror a closed trial soon; returns at once."""
        self._put(trial, tuple(dead_ends))

    def sync(self, snapshot: StudySnapshot) -> None:
        """Make MLflow equal to the snapshot soon; returns at once. Replaces all that is still waiting."""
        with self._changed:
            self._snapshot = snapshot
            self._trials.clear()
            self._left_out.clear()
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is mirrored, one try included that is due only later; False if it failed or took too long."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._is_urgent = True
            self._changed.notify_all()
            while self._has_work and self._is_urgent and not self._is_stopped:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            self._is_urgent = False
            return not self._has_work and not self._left_out

    def close(self, timeout_s: float) -> bool:
        """Flush, then end the thread; what it is still doing ends with the process."""
        is_done = self.flush(timeout_s)
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        return is_done

    @property
    def missing(self) -> str | None:
        """What MLflow does not have yet and how to repair it, in a sentence; None when it has everything."""
        with self._changed:
            number = len(self._trials) + len(self._left_out)
            if not self._has_work and not number:
                return None
            what = f"{number} trial{'s' * (number != 1)} not" if number else "The study is not completely"
            return f"{what} mirrored to MLflow. To repair: {self._repair_command}"

    @property
    def _has_work(self) -> bool:
        return bool(self._trials) or self._snapshot is not None or not self._is_open

    def _put(self, trial: Trial, dead_ends: tuple[str, ...]) -> None:
        with self._changed:
            self._trials.pop(trial.number, None)
            self._trials[trial.number] = (trial, dead_ends)
            if len(self._trials) > self._capacity:
                oldest = next(iter(self._trials))
                del self._trials[oldest]
                self._left_out.add(oldest)
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while self._wait_for_work():
                self._work_once()
        finally:
            with self._changed:  # whoever waits in flush() must see that nobody works any more
                self._is_stopped = True
                self._changed.notify_all()

    def _wait_for_work(self) -> bool:
        """Block until there is something to do and it may be tried; False when the worker was closed."""
        with self._changed:
            while not self._is_stopped:
                delay = 0.0 if self._is_urgent else self._next_try - time.monotonic()
                if self._has_work and delay <= 0:
                    return True
                self._changed.wait(delay if self._has_work else None)
            return False

    def _work_once(self) -> None:
        try:
            if self._mirror is None:
                self._mirror = self._make_mirror()
                self._mirror.open_study(self._opening)
                self._done()
            if self._snapshot is not None:
                self._sync(self._mirror)
            elif self._trials:
                self._one_trial(self._mirror)
        except MirrorError as error:
            self._failed(error)

    def _sync(self, mirror: Mirror) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        mirror.sync(snapshot)
        with self._changed:
            self._opening = snapshot
            if self._snapshot is snapshot:
                self._snapshot = None
        self._done()

    def _one_trial(self, mirror: Mirror) -> None:
        with self._changed:
            if not self._trials:
                return
            number, (trial, dead_ends) = next(iter(self._trials.items()))
        try:
            mirror.mirror_trial(trial, dead_ends)
        except MirrorError as error:
            if error.is_transient:
                raise
            self._warn(f"Trial {number} is not mirrored: {error}")
            with self._changed:
                self._left_out.add(number)
        with self._changed:
            # A newer state of the trial may have come in meanwhile: that one is still to be written.
            if number in self._trials and self._trials[number][0] is trial:
                del self._trials[number]
        self._done()

    def _done(self) -> None:
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def _failed(self, error: MirrorError) -> None:
        self._mirror = None
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"{error}. The search goes on; what is missing can be mirrored later: {self._repair_command}")
        with self._changed:
            self._next_try = time.monotonic() + self._retry_s
            self._is_urgent = False
            self._changed.notify_all()
