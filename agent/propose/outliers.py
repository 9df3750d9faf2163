"""Launches that are several times slower than others must not decide how large usual effects are.

A value that alone makes everything several times slower (no CUDA graphs, say) has an effect of its own size. Any other
launch far below the rest counts as if it were just far below: how far says nothing of the few per cent that matter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from search_spaces import Scalar

Value = tuple[str, Scalar]
"""A parameter and one of its values. No two of a parameter are equal."""

RANK = 3
"""Launches that have to be as good for one to be called usual: the luckiest one is not."""
FAR, RUINOUS = 0.5, math.log(4.0)
"""How far below that, in logarithms, a launch is far below the rest, and a value may be to blame for it."""


def ruinous(logs: Sequence[float], points: Sequence[Mapping[str, Scalar]], names: Collection[str]) -> list[Value]:
    """Return the values that alone make a launch several times slower, in order of appearance.

    Args:
        logs: Logarithm of each launch's figure without what is known beforehand.
        points: The assignment of each launch.
        names: Parameters whose values may be to blame.
    """
    values = [[(name, point[name]) for name in names] for point in points]
    usual = _usual(logs)
    harmless = {value for log, row in zip(logs, values, strict=True) if log >= usual - FAR for value in row}
    found: dict[Value, None] = {}
    for log, row in zip(logs, values, strict=True):
        left = [value for value in row if value not in harmless]
        if log < usual - RUINOUS and len(left) == 1:
            found[left[0]] = None
    return list(found)


def bounded(logs: Sequence[float], explained: Sequence[bool]) -> list[float]:
    """Return the logarithms, none of those that no ruinous value explains farther below the usual ones than far."""
    floor = _usual(logs) - FAR
    return [log if is_explained else max(log, floor) for log, is_explained in zip(logs, explained, strict=True)]


def _usual(logs: Sequence[float]) -> float:
    return sorted(logs, reverse=True)[:RANK][-1]
