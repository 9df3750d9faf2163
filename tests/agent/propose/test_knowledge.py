"""What a launch is expected to teach about whom to declare."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agent.propose.knowledge import gradients


def gradient(means: list[float], shared: list[float], mean: float, sd: float, noise_sd: float = 0.05) -> float:
    """Return the gradient of one candidate."""
    found = gradients(np.array(means), np.array([shared]), np.array([mean]), np.array([sd]), noise_sd)
    return float(found[0])


@pytest.mark.parametrize(("mean", "sd"), [(-0.05, 0.1), (0.0, 0.05), (0.03, 0.02)])
def test_a_candidate_that_shares_nothing_is_worth_its_expected_improvement(mean: float, sd: float) -> None:
    """In closed form, with the part of its doubt that one launch takes away."""
    told = sd**2 / math.hypot(sd, 0.05)
    z = mean / told
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    closed = mean * 0.5 * (1 + math.erf(z / math.sqrt(2))) + told * density
    assert gradient([0.0], [0.0], mean, sd) == pytest.approx(closed, abs=0.02 * told)


def test_what_cannot_change_the_choice_is_worth_nothing() -> None:
    """The leader far ahead of everyone need not be launched again, nor somebody far behind."""
    assert gradient([1.0, 0.0], [0.02**2, 0.0], 1.0, 0.02) == pytest.approx(0.0, abs=1e-12)
    assert gradient([1.0, 0.0], [0.0, 0.02**2], 0.0, 0.02) == pytest.approx(0.0, abs=1e-12)


def test_of_two_near_equals_either_is_worth_a_launch_and_the_doubtful_one_more() -> None:
    """The difference between them is what a launch of either tells."""
    means = [0.0, 0.0]
    sure, doubtful = gradient(means, [0.02**2, 0.0], 0.0, 0.02), gradient(means, [0.0, 0.05**2], 0.0, 0.05)
    assert 0.0 < sure < doubtful


def test_near_equals_that_rise_and_fall_together_need_not_be_told_apart() -> None:
    """A launch that lifts both alike changes no choice."""
    apart, together = gradient([0.0, 0.0], [0.0, 0.0025], 0.0, 0.05), gradient([0.0, 0.0], [0.0025, 0.0025], 0.0, 0.05)
    assert together < 0.01 * apart


def test_noise_makes_a_launch_worth_less() -> None:
    """It then tells less."""
    worth = [gradient([0.0], [0.0], 0.0, 0.05, noise) for noise in (0.01, 0.05, 0.2)]
    assert worth == sorted(worth, reverse=True)
