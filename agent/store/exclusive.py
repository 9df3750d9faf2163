"""One process at a time, for the moment in which a study changes hands. Ends with the process, however it dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from agent.store.storage_url import storage_file

LOCK = ".owner.lock"
"""What the lock file beside an SQLite database is called, behind the database's own name. (A lock on the database
file itself would be lost, and SQLite's with it, as soon as this process closes any other handle of that file.)"""


@contextmanager
def exclusively(url: str, name: str) -> Iterator[None]:
    """Hold the lock of a study in the storage at `url`: a file lock beside SQLite, an advisory lock in PostgreSQL.

    Other databases have none here: there two agents that start within milliseconds are told apart only by who wrote
    last.
    """
    file = storage_file(url)
    if file is not None:
        with file.with_name(file.name + LOCK).open("ab") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
    elif url.startswith("postgresql"):
        with _advisory_lock(url, name):
            yield
    else:
        yield


@contextmanager
def _advisory_lock(url: str, name: str) -> Iterator[None]:
    from sqlalchemy import create_engine, text

    engine = create_engine(url)
    try:
        with engine.connect() as connection:  # the lock ends with the transaction
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
            yield
    finally:
        engine.dispose()
