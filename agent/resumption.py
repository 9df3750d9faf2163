"""Which study goes on, and whether it may: the choice among open ones, and the environment it was in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent.absent import check_present, stored_engine
from agent.environment import Collect, collected_facts, compare, facts_now, refusal
from agent.errors import UsageError
from agent.home import Home
from agent.session import ChangedEnvironment
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore, study_names
from agent.studies import open_study
from agent.wishes import read_wishes
from runners.engine_dialects import EngineNotUsableError

if TYPE_CHECKING:
    from rich.console import Console


def open_studies(store: StudyStore) -> list[str]:
    """Return the other studies of a storage that have launches left, each with how far it is."""
    storage = open_storage(store.url)
    others = (StudyStore(storage, store.url, name) for name in study_names(storage) if name != store.name)
    found = []
    for other in others:
        spent, budget = sum(trial.counts for trial in other.trials()), read_wishes(other).budget
        if spent < budget:
            found.append(f"{other.name} ({spent} of {budget} launches)")
    return found


def study_to_resume(
    home: Home, name: str | None, storage_url: str | None, budget: int | None, console: Console
) -> tuple[StudyStore, str]:
    """Return the study that is to go on, and its tracking address.

    Raises:
        UsageError: none is named, the last one has nothing left to do, and others have.
    """
    store, tracking_uri = open_study(home, name, storage_url)
    if name is not None:
        return store, tracking_uri
    others = open_studies(store)
    is_done = sum(trial.counts for trial in store.trials()) >= read_wishes(store).budget
    if is_done and budget is None and others:
        raise UsageError(
            f"the last study, {store.name}, has spent its budget (more of it: agent resume {store.name} --budget N). "
            f"Open are: {', '.join(others)}. Say which: agent resume NAME"
        )
    if others:
        console.print(f"going on with the last study, {store.name}; also open: {', '.join(others)}", soft_wrap=True)
    return store, tracking_uri


def check_environment(
    store: StudyStore, home: Home, console: Console, *, accept: bool, collect: Collect = collected_facts
) -> ChangedEnvironment | None:
    """Return the changed environment to go on in, or None where nothing changed that matters.

    Args:
        store: The study.
        home: Its home.
        console: Where it is noted what changed and does not matter.
        accept: Whether the user wants to go on in it.
        collect: Reads the facts of this node.

    Raises:
        UsageError: something did, and the user has not accepted it, with the differences and the two ways on; or
            node model or engine are gone.
    """
    check_present(stored_engine(store.manifest.settings.engine))
    try:
        now = facts_now(store.manifest, os.environ, collect)
    except EngineNotUsableError as error:
        raise UsageError(f"study {store.name} cannot go on: {error}") from error
    changes = compare(store.manifest.facts, now)
    for each in changes.noted:
        console.print(f"note: {each}", style="dim", soft_wrap=True)
    if not changes.relevant:
        return None
    if not accept:
        raise refusal(store.name, changes, home.resume(store.name))
    return ChangedEnvironment(now, changes.relevant)
