"""What of a level counts: limits of each request, and limits of so many of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.goodput import Answered, Limit, goodput_of


def requests(*ttft_ms: float) -> list[Answered]:
    return [Answered(ttft_ms=each, tpot_ms=10.0, e2e_ms=1000.0, output_tokens=100) for each in ttft_ms]


EACH = Limit(figure="ttft_ms", at_most=500)
MOST = Limit(figure="ttft_ms", percentile=90, at_most=500)


def test_a_request_beyond_a_limit_of_each_does_not_count() -> None:
    """Nine of ten are in time: nine tenths of the rate count."""
    found = goodput_of(requests(*[100] * 9, 900), 10.0, [EACH])
    assert found is not None
    assert (found.requests_per_s, found.output_tok_per_s, found.within) == (0.9, 90.0, {"ttft_ms": 0.9})


def test_a_limit_at_a_percentile_lets_so_many_be_late() -> None:
    """One of ten may be late; with four late, the level counts by how far it falls short."""
    whole = goodput_of(requests(*[100] * 9, 900), 10.0, [MOST])
    short = goodput_of(requests(*[100] * 6, *[900] * 4), 10.0, [MOST])
    assert whole is not None and short is not None
    assert (whole.output_tok_per_s, whole.within) == (100.0, {"ttft_ms.p90": 0.9})
    assert short.output_tok_per_s == pytest.approx(100.0 * 0.6 / 0.9)


def test_all_limits_hold_together() -> None:
    """A request has to keep every limit of each; of the others the one that is broken most counts."""
    mixed = [Answered(ttft_ms=1, tpot_ms=t, e2e_ms=e, output_tokens=10) for t, e in ((1, 9), (9, 1), (1, 1), (1, 1))]
    single = [Limit(figure="tpot_ms", at_most=5), Limit(figure="e2e_ms", at_most=5)]
    found = goodput_of(mixed, 1.0, single)
    assert found is not None and found.requests_per_s == 2.0
    shares = [Limit(figure="tpot_ms", percentile=50, at_most=0.5), Limit(figure="e2e_ms", percentile=100, at_most=10)]
    nothing = goodput_of(mixed, 1.0, shares)
    assert nothing is not None and nothing.requests_per_s == 0.0


def test_without_limits_there_is_no_goodput() -> None:
    assert goodput_of(requests(1.0), 1.0, []) is None


@given(st.lists(st.floats(1, 2000), min_size=1, max_size=30), st.floats(1, 100), st.floats(1, 2000))
def test_goodput_is_never_more_than_the_rate_and_grows_with_the_limit(
    ttft_ms: list[float], percentile: float, at_most: float
) -> None:
    tight, wide = (
        goodput_of(requests(*ttft_ms), 2.0, [Limit(figure="ttft_ms", percentile=percentile, at_most=limit)])
        for limit in (at_most, 2 * at_most)
    )
    assert tight is not None and wide is not None
    assert 0 <= tight.requests_per_s <= wide.requests_per_s <= len(ttft_ms) / 2.0 * (1 + 1e-9)
