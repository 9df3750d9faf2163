"""What is wrong with a storage address, found before anything is written: form, driver, folder, server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import UsageError
from agent.home import folder_problem
from agent.redaction import redact_text

if TYPE_CHECKING:
    from sqlalchemy import URL

CONNECT_S = 5
EXPECTED = "Expected sqlite:////FOLDER/study.db or postgresql://USER@HOST/DATABASE."
_PACKAGES = {"psycopg": "'psycopg[binary]'", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}


def storage_problem(text: str) -> str | None:
    """Return why a study cannot be stored at this address and what to do, or None. Nothing is created there."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        url = make_url(text)
        url.get_dialect().import_dbapi()
    except ImportError as error:
        package = _PACKAGES.get(str(error.name), str(error.name))
        return f"its driver {error.name} is not installed beside the agent. Install it: pip install {package}"
    except (ArgumentError, NoSuchModuleError, ValueError, AttributeError):
        return f"not the address of a database. {EXPECTED}"
    return _file_problem(url) if url.get_backend_name() == "sqlite" else _server_problem(url)


def storage_file(text: str) -> Path | None:
    """Return the file of an SQLite address, or None for any other one."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        return None
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def unusable_path(path: Path) -> str | None:
    """Return why a path cannot be that of any file, or None."""
    try:
        path.exists()
    except (OSError, ValueError) as error:  # too long, or a NUL
        return str(getattr(error, "strerror", None) or error)
    return None


def check_existing(text: str) -> None:
    """Raise UsageError for an SQLite address without a file: opening it would create one."""
    file = storage_file(text)
    if file is None:
        return
    if problem := unusable_path(file):
        raise UsageError(f"--storage {file}: {problem}")
    if not file.exists():
        raise UsageError(f"there is no study in {file}: begin one with `agent search`, or name another --home")


def _file_problem(url: URL) -> str | None:
    if not url.database or url.database == ":memory:":
        return f"a study must outlive the agent, and memory does not. {EXPECTED}"
    path = Path(url.database)
    if problem := unusable_path(path):
        return f"{problem}. {EXPECTED}"
    if path.is_dir():
        return f"this is a folder. {EXPECTED}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}. Create it, or choose another."
    problem = folder_problem(path.parent)
    return f"nothing can be written into {path.parent} ({problem}). Choose another folder." if problem else None


def _server_problem(url: URL) -> str | None:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    takes_timeout = url.get_backend_name() in ("postgresql", "mysql", "mariadb")
    engine = create_engine(url, connect_args={"connect_timeout": CONNECT_S} if takes_timeout else {})
    try:
        engine.connect().close()
    except (SQLAlchemyError, OSError) as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        return f"the database cannot be reached: {redact_text(cause)}. Start it, or name another."
    finally:
        engine.dispose()
    return None
