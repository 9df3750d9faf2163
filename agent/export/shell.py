"""For a POSIX shell: a script that starts the engine, and its variables as a file."""

from __future__ import annotations

import re
import shlex

from agent.errors import UsageError
from agent.export.takeaway import Reference, Takeaway, Word


def as_script(taken: Takeaway) -> str:
    """Return a script that starts the engine in its own process; it stops where a secret is not set."""
    checks = [f': "${{{name}:?set {name} first: it is a secret and is not written here}}"' for name in taken.secrets]
    variables = [f"export {name}={_quoted(word)}" for name, word in taken.env.items()]
    command = " \\\n  ".join(_lines([_quoted(word) for word in taken.argv]))
    return "\n".join(["#!/bin/sh", *_head(taken), "set -eu", *checks, *variables, f'exec {command} "$@"', ""])


def as_env_file(taken: Takeaway) -> str:
    """Return the variables alone, one `NAME=value` a line, as `docker run --env-file` and systemd read them.

    Nothing is quoted there, and a secret is left out: `docker run` takes a bare NAME from the shell.

    Raises:
        UsageError: a value has a line break, which this form cannot hold.
    """
    lines = []
    for name, word in taken.env.items():
        text = "".join(part for part in word if isinstance(part, str))
        if "\n" in text:
            raise UsageError(f"{name} has a line break, which an env file cannot hold: export sh or json")
        is_plain = all(isinstance(part, str) for part in word)
        lines.append(f"{name}={text}" if is_plain else f"# a secret, set it yourself:\n{name}")
    command = " ".join(_quoted(word) for word in taken.argv)
    return "\n".join([*_head(taken), f"# command: {command}", *lines, ""])


def _head(taken: Takeaway) -> list[str]:
    return [f"# Study {taken.study}, launch #{taken.trial}, {taken.engine} {taken.version}: {taken.said}"]


def _lines(words: list[str]) -> list[str]:
    """An option and its values on one line."""
    lines: list[str] = []
    for word in words:
        if lines and not re.match(r"--?[A-Za-z]", word) and not word.startswith("-m"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _quoted(word: Word) -> str:
    """Return a word as the shell reads it back: plain parts quoted, references in double quotes."""
    if not word:
        return "''"
    return "".join(f'"${{{part.variable}}}"' if isinstance(part, Reference) else shlex.quote(part) for part in word)
