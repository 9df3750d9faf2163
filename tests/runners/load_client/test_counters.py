"""Counters of real pages, summed over engines, and what lies between two readings."""

from __future__ import annotations

from runners.load_client import RequestRecord, Speculation
from runners.load_client.counters import Counters, growth, parse_counters, speculation_between, speculation_of

VLLM_PAGE = """\
# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 1261.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 39.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.7959854713822305e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 4691.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 3318.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 1078.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 896.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",model_name="m",position="1"} 4.0
vllm:generation_tokens_total{engine="0",model_name="m"} 8780.0
vllm:request_generation_tokens_sum{engine="0",model_name="m"} 8780.0
"""
"""Lines of a page of vLLM 0.32.0 (n-gram speculation on a CPU), with those of a second engine added."""


def test_a_page_of_vllm_is_summed_over_its_engines() -> None:
    """Creation times and sums of histograms are no counts."""
    assert parse_counters(VLLM_PAGE) == Counters(
        generated_tokens=8780,
        drafts=1300,
        drafted_tokens=4691,
        accepted_tokens=3318,
        accepted_per_position={0: 1078, 1: 900},
    )


def test_a_page_without_counters_shows_none() -> None:
    """None is not zero: nothing can be compared with it."""
    assert parse_counters("") == Counters()
    assert growth(None, 5) is None
    assert growth(3, 5) == 2


def test_speculation_is_what_grew_between_two_readings() -> None:
    """Position by position; a position that appeared since had been at zero."""
    before = Counters(drafts=10, drafted_tokens=30, accepted_tokens=12, accepted_per_position={0: 8, 1: 4})
    after = Counters(drafts=30, drafted_tokens=90, accepted_tokens=40, accepted_per_position={0: 24, 1: 12, 2: 4})
    assert speculation_between(before, after) == Speculation(
        verify_passes=20, accepted_tokens=28, drafted_tokens=60, accepted_per_position=(16, 8, 4)
    )
    assert speculation_between(after, after) is None
    assert speculation_between(Counters(), Counters()) is None


def request(tokens: int, passes: int | None, histogram: tuple[int, ...] = ()) -> RequestRecord:
    return RequestRecord(
        concurrency=1, index=0, sent_ms=0, output_tokens=tokens, verify_passes=passes, accepted_histogram=histogram
    )


def test_histograms_of_requests_become_counts_by_position() -> None:
    """Drafts are accepted in order: a pass that accepted two accepted positions 0 and 1."""
    records = [request(9, 5, (2, 3)), request(9, 4, (1, 1, 2))]
    assert speculation_of(records) == Speculation(
        verify_passes=9, accepted_tokens=3 + 1 + 2 * 2, accepted_per_position=(3 + 1 + 2, 2)
    )


def test_requests_without_histograms_still_tell_their_length() -> None:
    """Each pass emitted one token of its own, and the first token came from the prefill."""
    found = speculation_of([request(11, 4), request(11, 6)])
    assert found == Speculation(verify_passes=10, accepted_tokens=10)
    assert speculation_of([request(11, None)]) is None
