"""Acceptance, margins and percentiles: the arithmetic of the engine without any process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.torch_engine.associations import Associations
from runners.torch_engine.cli import parse_config
from runners.torch_engine.measurement import pass_exchanges, percentile, step_exchanges
from runners.torch_engine.speculation import judge

TOKENS = st.integers(0, 5)


@given(
    st.integers(0, 8).flatmap(
        lambda k: st.tuples(st.lists(TOKENS, min_size=k, max_size=k), st.lists(TOKENS, min_size=k + 1, max_size=k + 1))
    )
)
def test_emitted_tokens_are_the_picks_up_to_the_first_disagreement(
    drafted_and_picks: tuple[list[int], list[int]],
) -> None:
    """Every emitted token is one that the full model picked after tokens that it picked itself."""
    drafted, picks = drafted_and_picks
    margins = [float(index) for index in range(len(picks))]
    verdict = judge([*map(float, drafted), *map(float, picks), *margins, 7.0], len(drafted))
    assert verdict.emitted == picks[: verdict.accepted + 1]
    assert drafted[: verdict.accepted] == picks[: verdict.accepted]
    assert verdict.accepted == len(drafted) or drafted[verdict.accepted] != picks[verdict.accepted]
    assert verdict.margins == margins[: verdict.accepted + 1]
    assert verdict.largest_logit == 7.0


@pytest.mark.parametrize("largest_logit", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_an_error(largest_logit: float) -> None:
    """Garbage must not be served as tokens."""
    with pytest.raises(FloatingPointError):
        judge([3.0, 1.0, largest_logit], 0)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_percentiles_lie_between_the_extremes(values: list[float]) -> None:
    """Linear interpolation between neighbours."""
    assert percentile(values, 0) == min(values)
    assert percentile(values, 100) == max(values)
    assert min(values) <= percentile(values, 50) <= max(values)


def test_associations_are_one_cycle_and_mislead_the_share_that_was_asked_for() -> None:
    """Every class of token is visited, so the measured agreement is the dial."""
    known = Associations.draw(parse_config(["--preset", "tiny", "--device", "cpu", "--draft-agreement", "0.75"]))
    a, seen = 0, set()
    while a not in seen:
        seen.add(a)
        a = known.successor_a[a]
    assert len(seen) == 8
    assert [a in known.misled for a in range(8)].count(True) == 2
    assert all((known.early_successor_a(a) == known.successor_a[a]) == (a not in known.misled) for a in range(8))


def test_exchanges_of_a_pass_count_two_sums_a_layer_or_the_all_to_alls_of_experts() -> None:
    """The probe adds these up to the communication time of a verify pass."""
    flags = ["--preset", "tiny", "--device", "cpu", "--draft-length", "2"]
    split = pass_exchanges(parse_config(flags), rows=3, layers=3)
    assert [(exchange.op, exchange.numel, exchange.count) for exchange in split] == [("all_reduce", 3 * 128, 6)]
    owned = pass_exchanges(parse_config([*flags, "--expert-parallel", "on"]), rows=3, layers=3)
    assert [exchange.op for exchange in owned] == ["all_reduce", "all_to_all", "all_to_all", "all_gather"]
    assert {exchange.count for exchange in owned} == {3}
    step = step_exchanges(parse_config(flags), batch_size=1)
    assert sum(exchange.count for exchange in step) == 6 + 1 + 2 * 2 + 2
