"""The figures of a level, from requests whose times are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.load_client import LoadResult, RequestRecord, Speculation, UnusableLoadError, measurement_of
from runners.load_client.figures import decode_passes, level_measurement, percentile


def request(ttft_ms: float, gaps_ms: tuple[float, ...], tokens: tuple[int, ...]) -> RequestRecord:
    return RequestRecord(
        concurrency=2,
        index=0,
        sent_ms=0,
        output_tokens=sum(tokens),
        ttft_ms=ttft_ms,
        gaps_ms=gaps_ms,
        tokens_per_event=tokens,
        total_ms=ttft_ms + sum(gaps_ms),
    )


def test_a_level_without_speculation() -> None:
    """Two requests of 5 tokens, 10 ms a token, within 0.1 s."""
    records = [request(20, (10.0,) * 4, (1,) * 5), request(40, (10.0,) * 4, (1,) * 5)]
    level = level_measurement(2, 0.1, records, None)
    assert level.output_tok_per_s == pytest.approx(100)
    assert (level.ttft_ms.p50, level.tpot_ms.p50, level.step_ms_p50) == pytest.approx((30, 10, 10))
    assert level.verify_steps_per_s == pytest.approx(100)
    assert (level.acceptance_length, level.acceptance_per_position) == (1.0, ())


def test_a_level_with_speculation() -> None:
    """7 tokens after the first in 3 passes of 20 ms: a pass emits 7/3 tokens."""
    speculation = Speculation(verify_passes=3, accepted_tokens=4, accepted_per_position=(3, 1))
    level = level_measurement(1, 0.08, [request(20, (20.0,) * 3, (1, 3, 2, 2))], speculation)
    assert level.acceptance_length == pytest.approx(7 / 3)
    assert level.acceptance_per_position == pytest.approx((1.0, 1 / 3))
    assert level.verify_steps_per_s == pytest.approx(50)
    assert level.tpot_ms.p50 == pytest.approx(60 / 7)
    assert level.step_ms_p50 == pytest.approx(20)


def test_bursts_of_the_server_do_not_change_the_step() -> None:
    """The same tokens in the same time, sent in two bursts."""
    steady = level_measurement(1, 0.1, [request(20, (10.0,) * 8, (1,) * 9)], None)
    bursts = level_measurement(1, 0.1, [request(20, (0.0, 0.0, 0.0, 80.0, 0.0, 0.0, 0.0, 0.0), (1,) * 9)], None)
    assert bursts.step_ms_p50 == pytest.approx(steady.step_ms_p50)
    assert bursts.tpot_ms == steady.tpot_ms


@pytest.mark.parametrize(
    ("decoded", "verified", "accepted", "passes"),
    [
        (60, 20, 45, 20),  # every pass verified; five accepted tokens fell behind the ends
        (60, 5, 12, 48),  # few drafts: 48 passes emitted 60 tokens, 12 of them accepted
        (60, 60, 0, 60),  # nothing was ever accepted
    ],
)
def test_passes_are_those_that_verified_or_those_that_the_tokens_need(
    decoded: int, verified: int, accepted: int, passes: int
) -> None:
    """Whichever is more."""
    assert decode_passes(decoded, Speculation(verify_passes=verified, accepted_tokens=accepted)) == passes


def test_an_answer_in_one_event_has_its_whole_time_and_no_steps() -> None:
    """Nothing lies between its tokens."""
    level = level_measurement(1, 0.1, [request(50, (), (5,))], None)
    assert level.tpot_ms.p50 == pytest.approx(10)
    assert level.verify_steps_per_s == 0.0


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_a_percentile_lies_within_the_values(values: list[float], percent: float) -> None:
    """Its ends are the least and the greatest."""
    assert min(values) <= percentile(values, percent) <= max(values) * (1 + 1e-12)
    assert (percentile(values, 0), percentile(values, 100)) == (min(values), max(values))


def test_a_measurement_holds_levels_outputs_and_the_clients_share() -> None:
    """All that a record of the trial needs."""
    result = LoadResult(outputs=((1, 2),), output_digest="ab", own_cpu_share=0.2)
    measurement = measurement_of(result)
    assert (measurement.outputs, measurement.output_digest) == (((1, 2),), "ab")
    assert measurement.extra == {"load_client_cpu_share": 0.2}
    with pytest.raises(UnusableLoadError, match="HTTP 500"):
        measurement_of(result.model_copy(update={"problem": "HTTP 500"}))
