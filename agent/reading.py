"""A stored study, opened to be read: no Ray, no engine, nothing written."""

from __future__ import annotations

from dataclasses import dataclass

from agent.campaign import history_of
from agent.heritage import chart_of
from agent.home import Home
from agent.propose.history import History
from agent.store.study_store import StudyStore
from agent.studies import open_study
from agent.summary import StudySummary, summarise
from agent.wishes import read_wishes
from runners.registry import make_runner


@dataclass(frozen=True, slots=True)
class Reading:
    """A study as it is stored now."""

    store: StudyStore
    tracking_uri: str
    history: History

    @property
    def summary(self) -> StudySummary:
        """The study in figures."""
        return summarise(self.history, self.store.name)


def read_study(home: Home, name: str | None, storage_url: str | None) -> Reading:
    """Return a stored study, by default the last one.

    Raises:
        UsageError: when there is no such study.
    """
    store, tracking_uri = open_study(home, name, storage_url)
    manifest, wishes = store.manifest, read_wishes(store)
    runner = make_runner(manifest.settings.engine.engine)
    atlas = chart_of(store, wishes)
    history = history_of(store, runner, atlas, wishes)
    return Reading(store, tracking_uri, history)
