"""What a pool hands out and gives back: a batch at work, how it was lost, and that there is no pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runners.contract import TrialRequest
from runners.ray_nodes import RayNode


class PoolError(RuntimeError):
    """Ray cannot be started or reached, or lacks the resources; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Running:
    """A batch of requests that is being worked on."""

    reference: Any
    """What the batch is waited for with: a Ray object, or whatever another pool has."""
    requests: tuple[TrialRequest, ...]
    node: RayNode | None = None
    """The node that it was sent to, where it was sent to one."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The task is gone without an answer: a killed worker, a lost node, or a fault of our own."""

    why: str
    is_node_lost: bool = False
    """Whether Ray says that it was the node that died."""


NODE_LOST = ("NodeDiedError", "TaskUnschedulableError")
"""Ray's words for a task whose node is gone, or was gone before it began. Source: Ray 2.60 exceptions."""


def loss_of(error: Exception) -> Lost:
    """Return what an error of Ray's says of a task, by the names of its classes: only the pool itself imports Ray."""
    names = [each.__name__ for each in type(error).__mro__]
    lines = str(error).strip().splitlines() or [""]
    if "RayTaskError" in names:
        return Lost(f"the runner failed: {lines[-1]}")
    return Lost(f"{type(error).__name__}: {lines[0]}", any(name in names for name in NODE_LOST))


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its class where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def failures_of_ray(what: str) -> Iterator[None]:
    """Turn whatever Ray raises into a PoolError that says `what` it failed to do.

    That may be anything: while its processes die it raises its own errors, those of gRPC, and bare ones (seen on 2.60).
    """
    try:
        yield
    except PoolError:
        raise
    except Exception as error:
        raise PoolError(f"Ray failed {what}: {first_line(error)}") from error
