"""Outputs that differ from the baseline's are a failure, however fast they came."""

from __future__ import annotations

import pytest

from agent.classify import OUTPUTS_DIFFER, wrong_output
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
    assert wrong_output(changed(*positions), BASELINE) is None


def test_less_agreement_is_wrong_output_with_the_first_difference_in_words() -> None:
    failure = wrong_output(changed(103, 104, 105), BASELINE)
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
    failure = wrong_output(outputs(rows), BASELINE)
    assert failure is not None
    assert failure.decisive is not None
    assert "nothing instead of" in failure.decisive.text


def test_further_requests_and_a_baseline_without_tokens_conclude_nothing() -> None:
    assert wrong_output(outputs((*BASELINE.outputs, (1, 2, 3))), BASELINE) is None
    assert wrong_output(BASELINE, outputs(())) is None
