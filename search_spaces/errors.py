"""Errors about what the user wrote: always where (file, line, key), what is wrong, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

_WORDS = {
    "Value error, ": "",
    "Assertion failed, ": "",
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid tuple": "a list, such as [1, 8]",
    "a valid dictionary": "a mapping, such as {name: value}",
    ", unable to parse string as an integer": "",
}


class SpecificationError(ValueError):
    """A file or option that the user wrote is wrong. Its text is complete and is shown without a traceback."""

    def __init__(self, problem: str, *, path: Path | None = None, line: int | None = None, key: str = "") -> None:
        place = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(f"{place}{key}: {problem}" if key else f"{place}{problem}")
        self.path, self.line, self.key, self.problem = path, line, key, problem


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint that names the closest valid name, or lists a few valid ones."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{close[0]}'?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"Valid: {shown}."


def plain_message(message: str) -> str:
    """Return a message of pydantic in the words of somebody who wrote the file."""
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message
