"""A command as people paste it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from agent.redaction import is_secret, redact_argv, redact_text


def command_line(argv: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Return an argument list and its variables as one line that a POSIX shell reads the same way.

    A secret variable is taken from the shell that the line is pasted into; a secret argument is masked.
    """
    variables = [f"{name}={_shell_value(name, value)}" for name, value in sorted(env.items())]
    return " ".join([*variables, shlex.join(redact_argv(argv))])


def _shell_value(name: str, value: str) -> str:
    return f'"${name}"' if is_secret(name, value) else shlex.quote(redact_text(value))
