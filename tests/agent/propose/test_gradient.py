"""What a launch is worth: how much it is expected to lift the best expectation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agent.propose.gradient import Outlook, _of, gains


def outlook(
    mean: float, sd: float, *, noise_sd: float, rivals: tuple[float, ...] = (0.0,), shared: tuple[float, ...] = (0.0,)
) -> Outlook:
    """Return what is expected of one candidate."""
    return Outlook(noise_sd, np.array([mean]), np.array([sd**2]), np.array(rivals), np.array([shared]))


def improvement(gain: float, sd: float) -> float:
    """Return the expected gain above zero of a normal variable."""
    z = gain / sd
    return gain * 0.5 * (1 + math.erf(z / math.sqrt(2))) + sd * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("mean", [-0.2, -0.05, 0.0, 0.1])
def test_without_noise_it_is_the_expected_improvement(mean: float) -> None:
    """A launch tells all there is to know, and one that shares nothing moves no other."""
    assert gains(outlook(mean, 0.1, noise_sd=1e-9))[0] == pytest.approx(improvement(mean, 0.1), abs=5e-4)


def test_the_more_launches_differ_the_less_one_of_them_is_worth() -> None:
    """It moves what is expected by less."""
    found = [float(gains(outlook(0.0, 0.1, noise_sd=noise))[0]) for noise in (0.0, 0.05, 0.1, 0.2, 0.4)]
    assert found == sorted(found, reverse=True) and found[-1] > 0.0


def test_what_a_candidate_and_the_leader_have_in_common_is_worth_nothing() -> None:
    """Both rise or fall together, and the same one stays the better."""
    alone = gains(outlook(-0.02, 0.1, noise_sd=0.1))[0]
    half, all_ = (gains(outlook(-0.02, 0.1, noise_sd=0.1, shared=(part * 0.01,)))[0] for part in (0.5, 1.0))
    assert alone > half > all_ == pytest.approx(0.0, abs=1e-9)


def test_it_counts_which_of_two_rivals_it_puts_ahead() -> None:
    """A candidate that can never win still tells rivals apart that differ in what it has."""
    never = outlook(-5.0, 0.1, noise_sd=0.05, rivals=(0.0, -0.01), shared=(0.0, 0.008))
    assert gains(never)[0] > 0.005
    assert gains(outlook(-5.0, 0.1, noise_sd=0.05))[0] == pytest.approx(0.0, abs=1e-9)


def test_where_one_launch_cannot_make_a_candidate_the_best_several_may() -> None:
    """Else nothing that is expected to be worse, and hardly known, would be launched where launches differ much."""
    far = outlook(-0.2, 0.15, noise_sd=0.3)
    single = float(_of(far, 1)[0])
    assert gains(far)[0] > 1.5 * single > 0.0
    near = outlook(0.05, 0.15, noise_sd=0.02)
    assert gains(near)[0] == pytest.approx(float(_of(near, 1)[0]))
