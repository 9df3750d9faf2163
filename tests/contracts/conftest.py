"""What several contracts run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.store.opening import open_storage


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty storage."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
        return
    server = request.getfixturevalue("postgres_url")
    yield server
    storage = open_storage(server)
    for study in storage.get_all_studies():
        storage.delete_study(study._study_id)
