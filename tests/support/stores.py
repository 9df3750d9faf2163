"""Study stores for tests: a manifest of the small space, and pieces of work to store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agent.store.manifest import Manifest
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore
from agent.store.trial import Kind, Work
from runners import Rung
from tests.support.planted import FACTS, small_space
from tests.support.simulated_study import settings


def manifest(name: str = "study") -> Manifest:
    """Return the description of a study of the small space."""
    return Manifest(
        settings=settings().model_copy(update={"name": name}),
        space=small_space(),
        facts=FACTS,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def sqlite_store(folder: Path, name: str = "study") -> StudyStore:
    """Return a new study in a SQLite file."""
    url = f"sqlite:///{folder / 'study.db'}"
    return StudyStore.create(open_storage(url), url, manifest(name))


def work(kind: Kind = Kind.SEARCH, **changes: object) -> Work:
    """Return a piece of work: the default with changes."""
    assignment = {**small_space().default_on(FACTS), **changes}
    rung = Rung.PROBE if kind is Kind.PROBE else Rung.FULL
    return Work.model_validate({"kind": kind, "rung": rung, "requested": assignment, "resolved": assignment})
