"""What a new study takes over from the earlier ones of its storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.deadends.atlas import Atlas
from agent.deadends.dead_end import DeadEnd
from agent.deadends.inheritance import Ancestor, inherit
from agent.epochs import ancestors_of, chart_at
from agent.store.manifest import Manifest
from agent.store.study_store import StudyStore, study_names
from agent.wishes import Wishes

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


def chart_of(store: StudyStore, wishes: Wishes) -> Atlas:
    """Return the map of a stored study: what it inherited and what its trials taught, without what is forgotten."""
    return chart_at(store, -1, wishes.forgotten_names)


def inherited_by(manifest: Manifest, storage: BaseStorage, url: str) -> tuple[DeadEnd, ...]:
    """Return the dead ends of the storage's other studies of the same engine on the same kind of device.

    Raises:
        StorageError: when one of them cannot be read.
    """
    others = (name for name in study_names(storage) if name != manifest.settings.name)
    stores = (StudyStore(storage, url, name) for name in others)
    ancestors = [each for store in stores if _is_related(store.manifest, manifest) for each in _epochs(store, manifest)]
    return inherit(ancestors, manifest.space, manifest.facts)


def _is_related(one: Manifest, other: Manifest) -> bool:
    mine, yours = one.settings.engine, other.settings.engine
    return (mine.engine, mine.device, one.space.engine) == (yours.engine, yours.device, other.space.engine)


def _epochs(store: StudyStore, manifest: Manifest) -> list[Ancestor]:
    mine, yours = store.manifest.settings.engine, manifest.settings.engine
    return ancestors_of(store, is_alike=dict(mine.options) == dict(yours.options))
