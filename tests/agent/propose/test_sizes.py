"""What launches tell about the sizes of effects and of the noise."""

from __future__ import annotations

import math
import random

import pytest

from agent.propose.sizes import Sizes, learned
from agent.propose.surrogate import Seen
from search_spaces import Assignment
from tests.support.planted import small_space

SPACE = small_space()
USUAL = Sizes(dict.fromkeys(SPACE.parameters, 0.15), 0.05)


def rows(noise_sd: float, seed: int = 0, number: int = 30) -> list[Seen]:
    """Return launches of a node on which only the backend and the draft length matter."""
    rng, found = random.Random(seed), []
    for _ in range(number):
        point: Assignment = {name: rng.choice(each.domain) for name, each in SPACE.parameters.items()}
        worth = 100.0 * (1.3 if point["backend"] == "c" else 1.0) * (1.0 + 0.15 * float(point["draft"]))
        found.append(Seen(point, worth * math.exp(rng.gauss(0.0, noise_sd))))
    return found


def test_a_parameter_that_changes_nothing_is_believed_to_change_little() -> None:
    """And one that changes much keeps its size: differences between its values are believed."""
    found = learned(SPACE, USUAL, rows(0.05)).effects
    assert found["graph"] < 0.5 * USUAL.effects["graph"]
    assert found["expert"] < 0.5 * USUAL.effects["expert"]
    assert found["backend"] >= USUAL.effects["backend"]
    assert found["draft"] >= USUAL.effects["draft"]


@pytest.mark.parametrize("noise_sd", [0.02, 0.05, 0.2])
def test_the_noise_is_learned_without_a_single_repeat(noise_sd: float) -> None:
    """What no effect explains is noise; on a node that is taken for quieter, lucky launches would be believed."""
    found = learned(SPACE, USUAL, rows(noise_sd)).noise_sd
    assert noise_sd / 1.7 < found < noise_sd * 1.7


def test_repeats_say_more_of_the_noise_than_anything_else() -> None:
    """Ten launches of each assignment settle it."""
    few = [Seen(row.assignment, row.value, number=10, squares=9 * 0.1**2) for row in rows(0.0, number=6)]
    assert learned(SPACE, USUAL, few).noise_sd == pytest.approx(0.1, rel=0.35)


def test_nothing_seen_but_one_launch_leaves_what_is_usual() -> None:
    """One launch has no differences."""
    assert learned(SPACE, USUAL, rows(0.05, number=1)).effects == USUAL.effects


def test_the_same_rows_give_the_same_sizes() -> None:
    """A resumed study believes the same."""
    assert learned(SPACE, USUAL, rows(0.1, seed=3)) == learned(SPACE, USUAL, rows(0.1, seed=3))
