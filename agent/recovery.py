"""Before a study goes on: who owns it, and what a previous agent left running or half closed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.errors import UsageError
from agent.heartbeat import is_silent, was_heard_of_lately
from agent.outcome import Outcome, OutcomeKind
from agent.store.exclusive import exclusively
from agent.store.opening import storage_errors
from agent.store.study_store import OWNER, SESSION, StudyStore
from agent.store.trial import Lease, Trial
from runners.cookies import SESSION_VARIABLE, is_alive, kill_processes, process_identity
from runners.shared_memory import NOTE, remove_noted


def own_lease() -> Lease:
    """Return the lease of this process."""
    return Lease(**process_identity()._asdict())


def take_ownership(
    store: StudyStore,
    *,
    take_over: bool = False,
    pause: Callable[[float], None] = time.sleep,
    tell: Callable[[str], None] = lambda _: None,
) -> Lease:
    """Make this process the study's owner and return its lease.

    Args:
        store: The study.
        take_over: Whether an owner that cannot be seen from here counts as gone.
        pause: How to wait, while an owner on another host is watched.
        tell: Is told what is being waited for.

    Raises:
        UsageError: when another agent owns the study and is alive, or cannot be told to be dead.
    """
    mine = own_lease()
    passed = _passable(store, mine, pause, tell, take_over=take_over)
    with storage_errors(store.url), exclusively(store.url, store.name):
        now = owner(store)
        if now not in (passed, mine, None):  # somebody was faster
            raise UsageError(_refusal(store.name, now))
        store.set_attribute(OWNER, mine.model_dump(mode="json"))
    return mine


def owner(store: StudyStore) -> Lease | None:
    """Return the lease under which the study was taken last, or None when it was given up."""
    found = store.get_attribute(OWNER)
    return None if found is None else Lease.model_validate(found)


def owner_of(store: StudyStore) -> str | None:
    """Return who runs the study now, in words, or None when nobody does."""
    found = owner(store)
    if found is None:
        return None
    alive = _is_alive(found)
    if alive is None:
        alive = was_heard_of_lately(store, found)
    return _words(found) if alive else None


def give_up_ownership(store: StudyStore, lease: Lease) -> None:
    """Leave the study to whoever comes next, unless somebody took it already."""
    with storage_errors(store.url), exclusively(store.url, store.name):
        if owner(store) == lease:
            store.set_attribute(OWNER, None)


def _words(found: Lease) -> str:
    return f"process {found.pid} on {found.host}"


def _refusal(study: str, found: Lease | None) -> str:
    who = "another agent" if found is None else _words(found)
    return f"study {study} is being run by {who}: wait for it or stop it"


def _passable(
    store: StudyStore,
    mine: Lease,
    pause: Callable[[float], None],
    tell: Callable[[str], None],
    *,
    take_over: bool,
) -> Lease | None:
    """Return the owner that is gone, or None where there was none.

    Raises:
        UsageError: it is alive, or nobody can tell.
    """
    found = owner(store)
    if found is None or found == mine:
        return found
    alive = _is_alive(found)
    if alive is None and take_over:
        return found
    if alive is None:
        tell(f"the study belongs to {_words(found)}: watching for a minute whether it is still alive")
        silent = is_silent(store, found, pause)
        if silent is None:
            raise UsageError(
                f"study {store.name} belongs to {_words(found)}, which cannot be seen from here: "
                "make sure that it is gone, then add --take-over"
            )
        alive = not silent
    if alive:
        raise UsageError(_refusal(store.name, found))
    return found


def _is_alive(found: Lease) -> bool | None:
    return is_alive(found.host, found.boot_id, found.pid_namespace, found.pid, found.started_ticks)


def begin_session(store: StudyStore, session_id: str) -> None:
    """End what the previous session of the study left on this host, and note the mark of the one that begins.

    Its watchdog does the same when the agent dies; this is for when that was killed too.
    """
    previous = store.get_attribute(SESSION)
    if previous is not None:
        kill_processes(str(previous), variable=SESSION_VARIABLE)
    store.set_attribute(SESSION, session_id)


def end_launch(trials: Sequence[Trial]) -> None:
    """End what a launch whose runner is gone left on this host: its processes, then its shared memory."""
    for cookie in {trial.cookie for trial in trials}:
        kill_processes(cookie)
    for trial in trials:
        remove_noted(Path(trial.artifact_dir) / NOTE)


def close_orphans(store: StudyStore) -> int:
    """End what a previous agent left, close its trials, and return how many there were.

    A trial whose outcome is stored already is told, not run again; any other is interrupted, which blames nothing and
    puts its work back into the queue.
    """
    orphans = [trial for trial in (*store.trials(), *store.probes()) if not trial.is_closed]
    end_launch(orphans)
    for trial in orphans:
        if trial.outcome is not None:
            store.tell(trial, trial.outcome)
        else:
            note = "the agent that ran it is gone"
            store.close(trial, Outcome(kind=OutcomeKind.INTERRUPTED, note=note), None)
    return len(orphans)
