"""What is several times slower than the rest is explained by one value, or counts as just far below."""

from __future__ import annotations

import math

import pytest

from agent.propose.outliers import FAR, bounded, ruinous
from search_spaces import Assignment

POINTS: list[Assignment] = [
    {"graph": graph, "proto": proto} for graph, proto in ((8, "a"), (8, "b"), (4, "a"), (4, "b"))
]
USUAL = [0.0, 0.1, -0.1, 0.05]


@pytest.mark.parametrize("below", [2.0, 5.0])
def test_a_value_that_alone_makes_launches_far_slower_is_to_blame(below: float) -> None:
    """Its launch differs from usual ones in nothing else; one that changes two things at once blames neither."""
    alone: Assignment = {"graph": 0, "proto": "a"}
    both: Assignment = {"graph": 0, "proto": "c"}
    assert ruinous([*USUAL, -below], [*POINTS, alone], ["graph", "proto"]) == [("graph", 0)]
    assert ruinous([*USUAL, -below], [*POINTS, both], ["graph", "proto"]) == []


def test_what_noise_may_explain_ruins_nothing() -> None:
    """Half as fast is no ruin, and no value of a launch that is as fast as usual is one."""
    slower: Assignment = {"graph": 0, "proto": "a"}
    assert ruinous([*USUAL, -0.7], [*POINTS, slower], ["graph", "proto"]) == []
    assert ruinous([*USUAL, -3.0, 0.0], [*POINTS, slower, slower], ["graph", "proto"]) == []


def test_only_what_nothing_explains_is_bounded() -> None:
    """The bound lies below the third best launch: one lucky launch does not lift it."""
    logs = [*USUAL, 3.0, -2.0, -2.0]
    found = bounded(logs, [False] * 6 + [True])
    assert found == [*USUAL, 3.0, pytest.approx(0.05 - FAR), -2.0]
    assert math.isclose(sorted(logs)[-3], 0.05)


def test_few_launches_are_left_as_they_are() -> None:
    """With three of them nobody knows which are usual."""
    assert bounded([0.0, -2.0, -4.0], [False] * 3) == [0.0, -2.0, -4.0]
