"""A stored study, opened to be read: no Ray, no engine, nothing written."""

from __future__ import annotations

from dataclasses import dataclass

from agent.absent import missing, stored_engine
from agent.epochs import chart_at
from agent.heritage import chart_of
from agent.home import Home
from agent.propose.history import History
from agent.store.study_store import StudyStore
from agent.studies import open_study
from agent.study_history import history_of
from agent.summary import StudySummary, summarise
from agent.wishes import read_counts, read_wishes


@dataclass(frozen=True, slots=True)
class Reading:
    """A study as it is stored now."""

    store: StudyStore
    tracking_uri: str
    history: History
    again: str
    """The shell line that goes on with it."""

    def history_with(self, label: str) -> History:
        """Return the history that has the launch (#12 or 12) or probe (p3): an earlier one, where it is older than a
        change of the environment; the present one, where there is no such trial."""
        number = label.lstrip("#pP")
        wanted = self.store.probes() if label[:1] in ("p", "P") else self.store.trials()
        found = next((trial for trial in wanted if str(trial.number) == number), None)
        if found is None or found.epoch == len(self.store.epochs) - 1:
            return self.history
        wishes = read_wishes(self.store)
        atlas = chart_at(self.store, found.epoch, wishes.forgotten_names)
        return history_of(self.store, self.history.runner, atlas, wishes, found.epoch)

    @property
    def missing(self) -> str:
        """What the study lacks to go on or to repeat a launch, and what to do; empty where nothing is missing."""
        return missing(self.history.runner)

    @property
    def summary(self) -> StudySummary:
        """The study in figures."""
        return summarise(self.history, self.store.name, read_counts(self.store))


def read_study(home: Home, name: str | None, storage_url: str | None) -> Reading:
    """Return a stored study, by default the last one.

    Raises:
        UsageError: when there is no such study.
    """
    store, tracking_uri = open_study(home, name, storage_url)
    manifest, wishes = store.manifest, read_wishes(store)
    runner = stored_engine(manifest.settings.engine)
    atlas = chart_of(store, wishes)
    history = history_of(store, runner, atlas, wishes)
    return Reading(store, tracking_uri, history, home.resume(store.name))
