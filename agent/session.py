"""One agent at work on one study: Ray, the mirror, the live view, and what is put down at the end."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent.algebra_threads import one_algebra_thread
from agent.campaign import Campaign
from agent.cluster_study import fleet_of
from agent.epochs import begin_epoch
from agent.errors import NodeUnusableError, StorageError
from agent.heartbeat import Heartbeat
from agent.home import Home
from agent.interruption import Interruption
from agent.live_view import LiveView
from agent.mirror.mlflow_mirror import MlflowMirror
from agent.mirror.snapshot import StudyStatus
from agent.mirror.tracking import default_artifact_root, default_tracking_uri
from agent.mirror.worker import MirrorWorker
from agent.process_end import guarded, last_words, leave, signals
from agent.propose.history import History
from agent.propose.order import Stop
from agent.recovery import begin_session, close_orphans, give_up_ownership, take_ownership
from agent.savings import Counts
from agent.side_by_side import gpus_held, pool_of
from agent.snapshot import dead_end_ids, snapshot_of
from agent.store.manifest import Manifest
from agent.store.study_store import PAUSED, StudyStore
from agent.store.trial import Kind, Trial
from agent.wishes import read_counts
from runners import EngineSettings
from runners.local_pool import LadderPool
from runners.ray_pool import PoolError, RayPool
from runners.registry import make_runner

if TYPE_CHECKING:
    from rich.console import Console

FLUSH_S = 120.0
"""How long the end of a search waits for the mirror."""


@dataclass(frozen=True, slots=True)
class ChangedEnvironment:
    """The facts of now, and what of them differs, in words."""

    facts: Mapping[str, object]
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How to run, as opposed to what: nothing of this is part of the study."""

    tracking_uri: str
    ray_address: str | None = None
    slots: int = 1
    time_budget_s: float | None = None
    take_over: bool = False
    changed: ChangedEnvironment | None = None
    """The environment that the user accepts, where it is not the one that the study was in."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a session ended, for whoever prints the result."""

    stop: Stop
    manifest: Manifest
    history: History
    is_mirrored: bool
    experiment_id: str
    ruled_out: Counts
    """What each dead end of the map ruled out."""


class _MirrorObserver:
    """Hands closed launches to the mirror's thread."""

    def __init__(self, worker: MirrorWorker) -> None:
        self._worker = worker

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Nothing: a run appears in MLflow when its trial is closed."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """Mirror a launch; probes become one table at the end."""
        if trial.work.kind is not Kind.PROBE:
            self._worker.trial_closed(trial, dead_end_ids(trial, history))

    def tick(self) -> None:
        """Nothing to do."""


def run_session(store: StudyStore, home: Home, options: SessionOptions, console: Console) -> Ended:
    """Run the study until it stops, and leave nothing behind.

    Raises:
        UsageError: another agent owns the study.
        NodeUnusableError: Ray does not come up or lacks the resources.
        StorageError: the storage failed; the study can be resumed.
    """
    environment = dict(os.environ)
    lease = take_ownership(store, take_over=options.take_over, tell=console.print)
    store.set_attribute(PAUSED, None)
    begin_session(store, session_id := secrets.token_hex(16))
    _close_orphans(store, console)
    if options.changed is not None:
        begin_epoch(store, options.changed.facts, options.changed.changes)
    mirror = make_mirror(options.tracking_uri, home)
    worker: MirrorWorker | None = None
    heartbeat = Heartbeat(store, lease)
    try:
        # Signals first: a Ctrl-C while Ray starts must not be lost in whatever Python was doing then.
        with (
            guarded(session_id),
            signals(console) as interruption,
            _started(interruption, options, store, console, home.resume(store.name)) as pool,
        ):
            campaign = Campaign(
                store=store,
                runner=make_runner(store.manifest.settings.engine.engine),
                pool=pool,
                home=home,
                lease=lease,
                environment=environment,
                observers=(),
                interruption=interruption,
                slots=options.slots,
                fleet=fleet_of(store, pool, options, console.print),
                deadline=None if options.time_budget_s is None else time.monotonic() + options.time_budget_s,
                lost_to=heartbeat.taker,
                tell=lambda words: console.print(words, style="yellow", soft_wrap=True),
            )
            worker = MirrorWorker(lambda: mirror, snapshot_of(store, campaign.history(), "running"), warn=console.print)
            view = LiveView(console, campaign.history(), store.name)
            campaign.observers = (view, _MirrorObserver(worker))
            with view.shown(), one_algebra_thread():
                stop = campaign.run()
        history = campaign.history()
        status: StudyStatus = "interrupted" if stop.resumable else "finished"
        worker.sync(snapshot_of(store, history, status))
        with console.status("bringing MLflow up to date"):
            is_mirrored = worker.close(FLUSH_S)
        if not is_mirrored and worker.missing:
            console.print(worker.missing, style="yellow")
        return _ended(stop, store, history, mirror if is_mirrored else None)
    finally:
        heartbeat.close()
        with suppress(StorageError):  # it failed already, and that is what the user is told; our lease ends with us
            give_up_ownership(store, lease)


def _close_orphans(store: StudyStore, console: Console) -> None:
    if number := close_orphans(store):
        console.print(f"{number} trials of the previous agent were closed as interrupted; their work is queued again")


def _ended(stop: Stop, store: StudyStore, history: History, mirror: MlflowMirror | None) -> Ended:
    """Return how a session ended; `mirror` is None where it is not up to date."""
    experiment = mirror.experiment_id if mirror is not None else ""
    return Ended(stop, store.manifest, history, mirror is not None, experiment, read_counts(store))


def make_mirror(tracking_uri: str, home: Home) -> MlflowMirror:
    """Return the mirror for a tracking address; only the default store keeps its artifacts in the home."""
    is_default = tracking_uri == default_tracking_uri(home.path)
    return MlflowMirror(tracking_uri, artifact_root=default_artifact_root(home.path) if is_default else None)


@contextmanager
def ray_of(options: SessionOptions, store: StudyStore, console: Console, again: str) -> Iterator[RayPool]:
    """Keep a Ray that has what a trial of the study needs; `again` is the command that goes on after a failed start.

    Raises:
        NodeUnusableError: there is none, or another agent of this machine has its GPUs.
    """
    settings, facts = store.manifest.settings.engine, store.epochs[-1].facts

    def lost(what: str) -> None:
        _leave_without(what, again, console)

    words = f"Error: the agent ended while Ray started: it was killed, or a part of Ray died. {_on_with(again)}"
    held: AbstractContextManager[None]
    if options.ray_address is not None:
        pool, held, needed = LadderPool(options.ray_address, lost=lost), nullcontext(), None
    else:
        pool = pool_of(store.manifest.space, settings, facts, os.environ, options.slots, lost=lost)
        held, needed = gpus_held(settings, facts, os.environ), settings
    pool.around_start = partial(last_words, words)
    with held, _running(pool, console, needed):
        yield pool


@contextmanager
def _running(pool: RayPool, console: Console, needed: EngineSettings | None = None) -> Iterator[RayPool]:
    """Keep a started Ray, which has to have what is needed of this machine."""
    try:
        with console.status("starting Ray"):
            pool.start()
        if needed is not None:
            pool.require(needed)
    except PoolError as error:
        _end(pool, console)
        raise NodeUnusableError(str(error)) from error
    try:
        yield pool
    finally:
        _end(pool, console)


def _end(pool: RayPool, console: Console) -> None:
    """Stop Ray. What it leaves is killed at the end of the session, by its mark; a result is no less good for it."""
    try:
        pool.stop()
    except PoolError as error:
        console.print(f"{error}; what is left of it is killed", style="yellow")


def _leave_without(what: str, again: str, console: Console) -> None:
    """End this process, whose main thread hangs in a call of Ray's; the watchdog kills what is left of it."""
    leave(f"Error: Ray's {what}. {_on_with(again)}", NodeUnusableError.exit_code, console)


def _on_with(again: str) -> str:
    """Return what to do once something killed Ray; `again` is the command that goes on."""
    return f"Nothing is lost: go on with `{again}`. If it happens again, see in `dmesg` what kills it."


@contextmanager
def _started(
    interruption: Interruption, options: SessionOptions, store: StudyStore, console: Console, again: str
) -> Iterator[RayPool]:
    """Keep a Ray as `ray_of` does, and let a signal end its start at once.

    A closed terminal takes the daemons with it that Ray is waiting for, and it would wait for a minute.
    """
    interruption.is_starting = True
    with ray_of(options, store, console, again) as pool:
        interruption.is_starting = False
        yield pool
