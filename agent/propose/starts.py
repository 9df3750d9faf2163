"""Where a search starts: the engine's default, safer and safer settings, and the one that every change is from."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from agent.propose import tallies
from agent.propose.admission import kept_below
from agent.store.trial import Kind
from runners import Rung
from search_spaces import Assignment

if TYPE_CHECKING:
    from agent.propose.history import History


def starts_of(history: History) -> tuple[Assignment, ...]:
    """Return the engine's default, then safer and safer settings."""
    space = history.space
    points = itertools.accumulate(space.fallbacks, lambda point, safer: {**point, **safer}, initial=history.default)
    return tuple(space.normalise(point, history.facts) for point in points)


def base_of(history: History) -> Assignment | None:
    """Return the default where it works, else the first assignment that worked; None where nothing is known yet.

    In a study without launches: what no rung refused.
    """
    if Rung.FULL not in history.rungs:
        allowed = (point for point in history.starts if history.atlas.match(point) is None)
        return next((point for point in allowed if kept_below(history, point, Rung.FULL) is None), None)
    of_default = tallies.of_default(history)
    starts = tallies.starting_points(history)
    if not of_default and not any(trial.counts and trial.work.kind is Kind.DEFAULT for trial in starts):
        return None
    first = next((trial for trial in of_default if trial.is_measured), None) or tallies.first_that_works(history)
    return None if first is None else first.work.resolved
