"""Errors that end a command, drawn as a tree; each leaf has the exit code that the command ends with.

AgentError
├── UsageError            2    what the user asked for cannot be done as asked (SpecificationError counts as one)
├── NothingWorksError     3    no assignment works, not even the safest
├── NodeUnusableError     4    the node or its Ray cannot run trials
└── StorageError          5    the storage or a disk failed; the study can be resumed
"""

from __future__ import annotations


class AgentError(Exception):
    """Base of the errors whose text is shown to the user as it stands.

    Args:
        lines: The text. What of it the user or a file wrote cannot begin a line of its own: it is shown as an escape.
    """

    exit_code = 1

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class UsageError(AgentError):
    """The command, an option or a file asks for something impossible."""

    exit_code = 2


class NothingWorksError(AgentError):
    """Neither the engine's default nor any safer setting works on this node."""

    exit_code = 3


class NodeUnusableError(AgentError):
    """The node cannot run trials."""

    exit_code = 4


class StorageError(AgentError):
    """The study database, the artifact folder or their disk failed."""

    exit_code = 5


INTERRUPTED_EXIT_CODE = 130
