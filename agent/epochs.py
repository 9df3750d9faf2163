"""A study whose environment changed: what was measured before is kept apart, what is dead goes over as to a new study.

Each trial belongs to the epoch in which it was launched. The proposer, the map and the summary see the trials of the
latest epoch only, and of the earlier ones no more than how much of the budget they took; so the default and the
baseline are measured again, and proposals stay a pure function of what is stored. The map hands its dead ends on as it
does from study to study: where the facts that a reason depends on are the same they block, where one differs they are
stale and checked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from agent.deadends.atlas import Atlas
from agent.deadends.charter import chart
from agent.deadends.inheritance import Ancestor, inherit
from agent.store.epoch import Epoch
from agent.store.study_store import StudyStore
from agent.wishes import read_wishes


def chart_at(store: StudyStore, epoch: int, forgotten: frozenset[str]) -> Atlas:
    """Return the map of one epoch of a study."""
    found, space = store.epochs[epoch], store.manifest.space
    trials, probes = store.trials_of(epoch), store.probes_of(epoch)
    return chart(trials, probes, space, found.facts, found.inherited, forgotten)


def ancestors_of(store: StudyStore, *, is_alike: bool = True) -> list[Ancestor]:
    """Return a study as an ancestor of others, oldest first: each of its epochs counts as one."""
    forgotten = read_wishes(store).forgotten_names
    return [
        Ancestor(
            name=store.name,
            space=store.manifest.space,
            facts=epoch.facts,
            dead_ends=chart_at(store, index, forgotten).dead_ends,
            is_alike=is_alike,
        )
        for index, epoch in enumerate(store.epochs)
    ]


def begin_epoch(store: StudyStore, facts: Mapping[str, object], changes: tuple[str, ...]) -> None:
    """Store that the study goes on in a changed environment. All of its trials must be closed."""
    inherited = inherit(ancestors_of(store), store.manifest.space, facts)
    store.add_epoch(Epoch(facts=facts, inherited=inherited, began_at=datetime.now(UTC), changes=changes))
