"""What a new study takes over from the earlier ones of its storage."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from agent.deadends.atlas import Atlas
from agent.deadends.dead_end import DeadEnd
from agent.deadends.inheritance import Ancestor, inherit
from agent.epochs import ancestors_of, chart_at
from agent.spread import Spread, pooled, spread_of
from agent.store.manifest import Manifest
from agent.store.study_store import StudyStore, study_names
from agent.wishes import Wishes

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


SAME_NODE = ("cpu_model", "num_cpus", "gpu_names", "gpu_arch", "driver", "engine_version")
"""Facts that must be equal for launches to differ by as much as they did in an earlier study."""


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


def inherited_spread(manifest: Manifest, storage: BaseStorage, url: str) -> Spread | None:
    """Return how much launches differ by the repeats of earlier studies that measured the same thing, or None.

    The same thing: engine, model, options, workload and device, on a node of the same hardware and software.

    Raises:
        StorageError: when one of them cannot be read.
    """
    spreads = []
    for name in study_names(storage):
        store = StudyStore(storage, url, name)
        if name == manifest.settings.name or not _measured_the_same(store.manifest, manifest):
            continue
        values: dict[str, list[float]] = defaultdict(list)
        for trial in store.trials_of():
            if trial.is_measured and trial.outcome is not None and trial.outcome.value:
                values[trial.work.key].append(trial.outcome.value)
        own = spread_of(group for group in values.values() if len(group) > 1)
        spreads.append(own.model_copy(update={"origin": f"study {name}"}))
    found = pooled(spreads)
    return found if found.freedom else None


def _measured_the_same(one: Manifest, other: Manifest) -> bool:
    what = [
        (each.settings.engine, each.settings.goals, each.settings.workload.model_copy(update={"seed": 0}))
        for each in (one, other)
    ]
    where = [{name: each.facts.get(name) for name in SAME_NODE} for each in (one, other)]
    return what[0] == what[1] and where[0] == where[1]


def _is_related(one: Manifest, other: Manifest) -> bool:
    mine, yours = one.settings.engine, other.settings.engine
    return (mine.engine, mine.device, one.space.engine) == (yours.engine, yours.device, other.space.engine)


def _epochs(store: StudyStore, manifest: Manifest) -> list[Ancestor]:
    mine, yours = store.manifest.settings.engine, manifest.settings.engine
    return ancestors_of(store, is_alike=dict(mine.options) == dict(yours.options))
