"""A new MLflow store in a SQLite file, whole or not at all.

MLflow builds its tables in dozens of migrations, and SQLite keeps each one by itself: a process that is killed among
them leaves a file that no MLflow opens again. So the tables are made in a draft, which becomes the store at the end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def create_sqlite_store(path: Path) -> None:
    """Create the store unless it is there; takes seconds. Two processes that do so at once end up with one store."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    draft = _draft(path, os.getpid())
    _build_tables(draft, path.parent / "mlartifacts")
    with suppress(FileExistsError):  # somebody else was faster, and theirs is as good
        os.link(draft, path)
    draft.unlink()


def _build_tables(draft: Path, artifact_root: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(f"sqlite:///{draft}", str(artifact_root))  # type: ignore[no-untyped-call]
    store.engine.dispose()


def _draft(path: Path, pid: int) -> Path:
    return path.with_name(f"{path.name}.{pid}.draft")


def _remove_abandoned(path: Path) -> None:
    """Remove the drafts of killed processes, with the journals that SQLite keeps beside them."""
    for draft in path.parent.glob(f"{path.name}.*.draft*"):
        pid = draft.name.removeprefix(f"{path.name}.").partition(".")[0]
        if not Path("/proc", pid).exists():
            draft.unlink(missing_ok=True)
