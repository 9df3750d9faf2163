"""Outputs that differ from the baseline's are a failure, however fast they came."""

from __future__ import annotations

import pytest

from agent.classify import OUTPUTS_DIFFER, check_outputs, own_agreement, wrong_output
from agent.reasons import Policy, Reason
from runners import Measurement

Rows = tuple[tuple[int, ...], ...]


def outputs(rows: Rows) -> Measurement:
    return Measurement(levels=(), outputs=rows)


BASELINE = outputs((tuple(range(100)), tuple(range(100, 200))))


def changed(*positions: int) -> Measurement:
    tokens = [-1 if index in positions else token for index, token in enumerate(range(200))]
    return outputs((tuple(tokens[:100]), tuple(tokens[100:])))


@pytest.mark.parametrize("positions", [(), (5,), (5, 150)])
def test_agreement_of_99_percent_is_enough(positions: tuple[int, ...]) -> None:
    assert wrong_output(changed(*positions), [BASELINE]) is None


def test_less_agreement_is_wrong_output_with_the_first_difference_in_words() -> None:
    failure = wrong_output(changed(103, 104, 105), [BASELINE])
    assert failure is not None
    assert (failure.reason, failure.rule, failure.policy) == (
        Reason.WRONG_OUTPUT,
        OUTPUTS_DIFFER.code,
        Policy.CONFIRM_ONCE,
    )
    assert failure.decisive is not None
    assert "98.5%" in failure.decisive.text
    assert "request 2, token 4: -1 instead of 103" in failure.decisive.text


@pytest.mark.parametrize("rows", [(), (tuple(range(100)),), (tuple(range(100)), tuple(range(100, 150)))])
def test_missing_tokens_disagree(rows: Rows) -> None:
    failure = wrong_output(outputs(rows), [BASELINE])
    assert failure is not None
    assert failure.decisive is not None
    assert "nothing instead of" in failure.decisive.text


def test_further_requests_and_a_baseline_without_tokens_conclude_nothing() -> None:
    assert wrong_output(outputs((*BASELINE.outputs, (1, 2, 3))), [BASELINE]) is None
    assert wrong_output(BASELINE, [outputs(())]) is None
    assert wrong_output(BASELINE, []) is None


def test_the_first_difference_of_every_request_is_kept() -> None:
    """Positions count from 1; a request that is equal has none."""
    check = check_outputs(changed(7, 9), [BASELINE])
    assert check is not None
    assert (check.first_differences, check.agreement, check.num_baselines) == ((8, None), 0.99, 1)
    assert check_outputs(BASELINE, [outputs(())]) is None


def rows(*ends: int) -> Measurement:
    """Return forty requests of ten tokens, each other than usual from one of these positions on, in turn."""
    lengths = [ends[index % len(ends)] for index in range(40)]
    return outputs(tuple(tuple(range(end)) + (-1,) * (10 - end) for end in lengths))


def test_a_baseline_that_disagrees_with_itself_asks_no_more_of_others() -> None:
    """Kernels that add up in another order each time turn near ties over: one launch of the baseline shows nothing."""
    steady, unsteady = rows(10), rows(10, 10, 10, 6)
    candidate = rows(10, 10, 6, 10)
    assert wrong_output(candidate, [steady]) is not None
    assert wrong_output(candidate, [steady, unsteady]) is None
    assert wrong_output(rows(2), [steady, unsteady]) is not None
    assert wrong_output(candidate, [steady, steady]) is not None
    assert own_agreement([steady, unsteady]) == pytest.approx(0.9)
    assert own_agreement([steady]) is None


def test_the_nearest_launch_of_the_baseline_counts() -> None:
    """What equals one of them is right."""
    assert wrong_output(rows(10, 6), [rows(10), rows(10, 6)]) is None


def test_one_token_throughout_is_said() -> None:
    """What NaN looks like from outside."""
    failure = wrong_output(outputs(((0,) * 100, tuple(range(100, 200)))), [BASELINE])
    assert failure is not None and failure.decisive is not None
    assert failure.decisive.text.endswith("one token throughout in 1 of 2 requests")
