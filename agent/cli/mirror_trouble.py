"""What is said where MLflow cannot be read or written by a command that is about nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def mirror_trouble() -> Iterator[None]:
    """Turn a MirrorError into the error of a command, with what to do."""
    from agent.errors import AgentError
    from agent.mirror.client import MirrorError

    try:
        yield
    except MirrorError as error:
        raise AgentError(
            f"{error}. Nothing is lost: `agent sync` writes it anew, once it answers, or once what is damaged was "
            "moved away."
        ) from error
