"""A database address → an Optuna storage, and whatever a database or a disk raises as one clear error."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, cast

from agent.errors import StorageError, UsageError
from agent.redaction import redact_text
from agent.store.patience import PatientStorage

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage

ATTEMPTS, PAUSE_S = 4, 0.5
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PASSWORD = re.compile(r"(://[^\s/:@]*):[^\s/]*@")


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turn what a database or a disk raises into one clear StorageError."""
    from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except JSONDecodeError as error:
        raise StorageError(
            f"storage {_without_password(url)}: what it holds cannot be read ({error}): it is damaged, or "
            "another program changed it. Name another one, or mend it."
        ) from error
    except (StorageInternalError, UpdateFinishedTrialError, SQLAlchemyError, OSError) as error:
        cause = error.__cause__ or error
        original = getattr(cause, "orig", None) or cause
        text = str(original).splitlines()[0]
        if getattr(original, "sqlite_errorcode", None) in DAMAGED:
            raise StorageError(
                f"storage {_without_password(url)}: {text}: it is damaged, or a file of something else. Put a copy of "
                "it back, or name another place with --home or --storage."
            ) from error
        raise StorageError(
            f"storage {_without_password(url)}: {text}. Nothing is lost: mend it and run `agent resume`."
        ) from error


def open_storage(url: str) -> BaseStorage:
    """Return the Optuna storage at `url`.

    Raises:
        UsageError: when the URL is malformed or its driver is not installed.
        StorageError: when the storage cannot be reached.
    """
    import optuna
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with storage_errors(url):
        try:
            # Another process may hold SQLite's lock for the length of a transaction: wait rather than fail.
            is_file = url.startswith("sqlite")
            # A server may have been restarted since a connection was used last: look before each use.
            arguments = {"connect_args": {"timeout": 60}} if is_file else {"pool_pre_ping": True}
            # Not by `optuna.get_storage`, which puts a cache in front: it would keep every trial once more in memory.
            storage = _opened(url, arguments)
            return storage if is_file else cast("BaseStorage", PatientStorage(storage))
        except (ArgumentError, NoSuchModuleError, ValueError, ImportError) as error:
            message = str(error).splitlines()[0]
            raise UsageError(
                f"--storage {_without_password(url)}: {message} Expected a database URL such as "
                "sqlite:///study.db or postgresql://user@host/database."
            ) from error
        except RuntimeError as error:  # Optuna's word for tables that are not, or not quite, its own
            raise UsageError(
                f"--storage {_without_password(url)}: its tables are those of another Optuna version or of another "
                "program. Name another database."
            ) from error


def _opened(url: str, arguments: dict[str, Any]) -> RDBStorage:
    """Open a storage, and make its tables; who makes them at the very moment when another agent does tries again."""
    import optuna
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    for _ in range(ATTEMPTS):
        with suppress(IntegrityError, ProgrammingError):
            return optuna.storages.RDBStorage(url, engine_kwargs=arguments)
        time.sleep(PAUSE_S)
    return optuna.storages.RDBStorage(url, engine_kwargs=arguments)


def _without_password(url: str) -> str:
    """Hide the password even of a URL that cannot be parsed, and where it is given as `?password=`."""
    return redact_text(_PASSWORD.sub(r"\1:***@", url))
