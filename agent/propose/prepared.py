"""What an engine would run for a candidate, worked out once: a search comes back to the same candidates many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from runners import Resolution
from search_spaces import Assignment, Scalar, assignment_key

if TYPE_CHECKING:
    from agent.propose.history import History

R = TypeVar("R")
MOST_KEPT = 4096
"""Candidates of which it is kept. It is a cache, and all are forgotten where there are more."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A candidate as it would be asked for, and what its engine and its space say of it. Nobody changes it."""

    requested: Assignment
    resolution: Resolution
    why_not: str | None
    """Why the engine or the space refuses it."""
    key: str
    """Of what is requested."""


def prepared(history: History, candidate: Mapping[str, Scalar]) -> Prepared:
    """Return a candidate in its normal form, with what it resolves to before any launch showed something else."""
    return kept(history, "prepared", str(candidate), lambda: _prepared(history, candidate))


def kept(history: History, name: str, key: str, make: Callable[[], R]) -> R:
    """Return what is made of a candidate by the space, the node and the engine alone; made once for each key."""
    of = (history.runner, history.space, history.settings.engine, facts_of(history))
    found: dict[str, R] = history.memo.derived(name, of, dict)
    if key not in found:
        if len(found) >= MOST_KEPT:
            found.clear()
        found[key] = make()
    return found[key]


def facts_of(history: History) -> str:
    """Return the facts of the node as text: equal ones need not be the same object."""
    return history.memo.derived("facts", (history.facts,), lambda: str(history.facts))


def replaced_values(history: History) -> str:
    """Return what the engine was seen to replace, and by what, in words."""
    return str([(*asked, proof.effective) for asked, proof in history.silent_rewrites.items()])


def _prepared(history: History, candidate: Mapping[str, Scalar]) -> Prepared:
    requested = history.space.normalise(candidate, history.facts)
    resolution = history.runner.resolve(requested, history.settings.engine, history.facts)
    why_not = resolution.error or history.space.violation(requested, history.facts)
    return Prepared(requested, resolution, why_not, assignment_key(requested))
