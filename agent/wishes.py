"""What the user may change while a study runs: stored as attributes of the study, read anew before each proposal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.store.study_store import ASKED, BUDGET, FORGOTTEN, PAUSED, RECHECKS, RULED_OUT, StudyStore
from search_spaces import Assignment


@dataclass(frozen=True, slots=True)
class Wishes:
    """A study's wishes as they are stored now."""

    budget: int
    """Launches at the top rung."""
    asked: tuple[Assignment, ...] = ()
    """Assignments that are to be launched before anything else, oldest first."""
    rechecks: Mapping[str, int] = field(default_factory=dict)
    """Id of a dead end that is to be checked again → how many such trials there are to be in all."""
    forgotten: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Id of a dead end that is to be left out → labels of the trials it rested on."""

    is_paused: bool = False
    """True when nothing more is to be started: what runs is measured to its end, then the agent leaves."""

    @property
    def forgotten_names(self) -> frozenset[str]:
        """The ids and the labels together: what the map leaves out."""
        labels = (label for labels in self.forgotten.values() for label in labels)
        return frozenset([*self.forgotten, *labels])


def read_wishes(store: StudyStore) -> Wishes:
    """Return the wishes of a study."""
    attributes = store.attributes()
    asked, rechecks, forgotten = (attributes.get(name) for name in (ASKED, RECHECKS, FORGOTTEN))
    return Wishes(
        budget=int(str(attributes.get(BUDGET) or 0)),
        asked=tuple(asked) if isinstance(asked, list) else (),
        rechecks={found: int(number) for found, number in rechecks.items()} if isinstance(rechecks, dict) else {},
        forgotten={found: tuple(labels) for found, labels in forgotten.items()} if isinstance(forgotten, dict) else {},
        is_paused=bool(attributes.get(PAUSED)),
    )


def read_counts(store: StudyStore) -> dict[str, dict[str, int]]:
    """Return id of a dead end → rung → how many candidates it ruled out, as the agents at work counted them."""
    counts = store.get_attribute(RULED_OUT)
    return {found: dict(rungs) for found, rungs in counts.items()} if isinstance(counts, dict) else {}
