"""The state folder: where the study database, the artifacts, the MLflow store and the name of the last study lie."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError

DEFAULT_HOME = "agent-state"
_HERE = "{home}"
"""Stands for the folder in its own note, so that the folder can be moved."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below the state folder. Nothing is created before `create`."""

    path: Path

    @classmethod
    def find(cls, option: str | None) -> Home:
        """Return the home of the option, of AGENT_HOME, or ./agent-state."""
        return cls(Path(option or os.environ.get("AGENT_HOME") or DEFAULT_HOME).absolute())

    @property
    def storage_url(self) -> str:
        """Default storage: a SQLite file here."""
        return f"sqlite:///{self.path / 'study.db'}"

    @property
    def tracking_uri(self) -> str:
        """Default tracking store: a SQLite file here."""
        return f"sqlite:///{self.path / 'mlflow.db'}"

    def words(self) -> list[str]:
        """Return the words by which a command finds this folder again; none where it would find it anyway."""
        usual = Home.find(None).path
        return [] if usual.resolve() == self.path.resolve() else ["--home", str(self.path)]

    def resume(self, study: str) -> str:
        """Return the shell line that goes on with a study of this home."""
        return shlex.join(["agent", "resume", study, *self.words()])

    def artifact_dir(self, study: str, label: str) -> Path:
        """Return the folder for the files of one trial."""
        return self.path / "artifacts" / study / label

    def create(self) -> None:
        """Create the folder.

        Raises:
            UsageError: when it cannot be written.
        """
        self.check()
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unwritable(str(error.strerror)) from error

    def check(self) -> None:
        """Raise UsageError when the folder, or the nearest one above it that exists, cannot be written."""
        try:
            nearest = next(path for path in (self.path, *self.path.parents) if path.exists())
        except (OSError, ValueError) as error:  # too long, or a NUL
            raise self._unwritable(str(getattr(error, "strerror", None) or error)) from error
        if (problem := folder_problem(nearest)) is not None:
            raise self._unwritable(problem)

    def _unwritable(self, problem: str) -> UsageError:
        return UsageError(f"the state folder {self.path} cannot be written ({problem}): choose another with --home")

    def remember(self, study: str, storage: str, tracking: str) -> None:
        """Note which study was worked on last, and where it lives."""
        note = {"study": study, "storage": storage, "tracking": tracking}
        write_atomically(self.path / "last.json", json.dumps(note).replace(str(self.path), _HERE))

    def last(self) -> dict[str, str]:
        """Return the note of `remember`, empty when there is none."""
        try:
            text = (self.path / "last.json").read_text(encoding="utf-8")
            content: dict[str, str] = json.loads(text.replace(_HERE, str(self.path)))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{self.path / 'last.json'} cannot be read ({error}): name the study and --storage"
            ) from error
        return content


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file or nothing, so that a kill leaves the old one; readable by this user alone."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def folder_problem(folder: Path) -> str | None:
    """Return why nothing can be written into an existing folder, or None. What it writes to find out is gone again."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".agent-"):
            return None
    except OSError as error:
        return str(error.strerror)


def name_problem(name: str) -> str | None:
    """Return what is wrong with a study's name, or None: it becomes a folder and an experiment, so it is plain."""
    if _NAME.fullmatch(name) and ".." not in name:
        return None
    return (
        "a study name has letters, digits, '.', '_' and '-', begins with a letter or digit, "
        "and has at most 100 characters"
    )


def check_stored_name(name: str) -> None:
    """Raise UsageError for a name that stands in a storage and is none of the agent's: it would become a folder."""
    if problem := name_problem(name):
        raise UsageError(f"study {name!r} of this storage was not made by the agent: {problem}")
