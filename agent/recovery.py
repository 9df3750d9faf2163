"""Before a study goes on: who owns it, and what a previous agent left running or half closed."""

from __future__ import annotations

from agent.errors import UsageError
from agent.outcome import Outcome, OutcomeKind
from agent.store.study_store import OWNER, StudyStore
from agent.store.trial import Lease
from runners.cookies import is_alive, kill_processes, process_identity


def own_lease() -> Lease:
    """Return the lease of this process."""
    return Lease(**process_identity()._asdict())


def take_ownership(store: StudyStore, *, take_over: bool = False) -> Lease:
    """Make this process the study's owner and return its lease.

    Raises:
        UsageError: when another agent owns the study and is alive, or cannot be seen from here.
    """
    found = store.get_attribute(OWNER)
    mine = own_lease()
    if found is not None and not take_over:
        _refuse_if_owned(store.name, Lease.model_validate(found), mine)
    store.set_attribute(OWNER, mine.model_dump(mode="json"))
    # Two agents that start at the same moment both get here; only the one that wrote last reads itself back.
    _refuse_if_owned(store.name, Lease.model_validate(store.get_attribute(OWNER)), mine)
    return mine


def owner_of(store: StudyStore) -> str | None:
    """Return who runs the study now, in words, or None when nobody does."""
    found = store.get_attribute(OWNER)
    if found is None:
        return None
    owner = Lease.model_validate(found)
    return None if _is_alive(owner) is False else f"process {owner.pid} on {owner.host}"


def give_up_ownership(store: StudyStore) -> None:
    """Leave the study to whoever comes next."""
    store.set_attribute(OWNER, None)


def _refuse_if_owned(study: str, owner: Lease, mine: Lease) -> None:
    if owner == mine:
        return
    alive = _is_alive(owner)
    if alive:
        raise UsageError(f"study {study} is being run by process {owner.pid} on {owner.host}: wait for it or stop it")
    if alive is None:
        raise UsageError(
            f"study {study} belongs to process {owner.pid} on {owner.host}, which cannot be seen from here: "
            "make sure that it is gone, then add --take-over"
        )


def _is_alive(owner: Lease) -> bool | None:
    return is_alive(owner.host, owner.boot_id, owner.pid_namespace, owner.pid, owner.started_ticks)


def close_orphans(store: StudyStore) -> int:
    """End what a previous agent left, close its trials, and return how many there were.

    A trial whose outcome is stored already is told, not run again; any other is interrupted, which blames nothing and
    puts its work back into the queue.
    """
    orphans = [trial for trial in (*store.trials(), *store.probes()) if not trial.is_closed]
    for cookie in {trial.cookie for trial in orphans}:
        kill_processes(cookie)
    for trial in orphans:
        if trial.outcome is not None:
            store.tell(trial, trial.outcome)
        else:
            note = "the agent that ran it is gone"
            store.close(trial, Outcome(kind=OutcomeKind.INTERRUPTED, note=note), None)
    return len(orphans)
