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
    "a valid array": "a list, such as [1, 8]",
    "a valid dictionary": "a mapping, such as {name: value}",
    ", unable to parse string as an integer": "",
}


MOST_KEY_CHARS = 120
MOST_PROBLEM_CHARS = 800
MOST_NAME_CHARS = 60


class SpecificationError(ValueError):
    """A file or option that the user wrote is wrong. Its text is complete and is shown without a traceback."""

    def __init__(self, problem: str, *, path: Path | None = None, line: int | None = None, key: str = "") -> None:
        key, problem = shortened(printable(key), MOST_KEY_CHARS), shortened(printable(problem), MOST_PROBLEM_CHARS)
        place = "" if path is None else f"{printable(str(path))}:{line}: " if line else f"{printable(str(path))}: "
        super().__init__(f"{place}{key}: {problem}" if key else f"{place}{problem}")
        self.path, self.line, self.key, self.problem = path, line, key, problem


def printable(text: str) -> str:
    """Return the text as a terminal may show it: what moves its cursor or ends the line is written as an escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shortened(text: str, most: int) -> str:
    """Return the text, of a longer one its beginning and its end."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 3 :]}"


def listed(values: Iterable[object], most: int = 16) -> str:
    """Return values as a list to choose from; of many, the first and the last."""
    texts = [shortened(str(value), MOST_NAME_CHARS) for value in values]
    shown = texts if len(texts) <= most else [*texts[: most - 2], "…", texts[-1]]
    return ", ".join(shown)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint that names the closest valid name, or lists a few valid ones."""
    names = sorted(valid)
    close = difflib.get_close_matches(name[:MOST_KEY_CHARS], names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{close[0]}'?"
    shown = ", ".join(shortened(name, MOST_NAME_CHARS) for name in names[:12]) + (", …" if len(names) > 12 else "")
    return f"Valid: {shown}."


def plain_message(message: str) -> str:
    """Return a message of pydantic in the words of somebody who wrote the file."""
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message
