"""The figures of a level without its warm-up: the requests at its beginning that are clearly slower than the rest."""

from __future__ import annotations

from collections.abc import Sequence

from runners.contract import LevelMeasurement
from runners.goodput import Limit
from runners.load_client.figures import level_measurement
from runners.load_client.job import RequestRecord, Speculation
from runners.transient import warm_up


def steady_measurement(
    concurrency: int,
    wall_s: float,
    records: Sequence[RequestRecord],
    speculation: Speculation | None,
    limits: Sequence[Limit] = (),
) -> LevelMeasurement:
    """Return the figures of a level whose requests were all served whole, without its warm-up.

    Rates are those of the time from the sending of the first request that counts; tokens of earlier ones that came
    later count too, since the server made them beside the others. Acceptance hangs on no clock and is of all requests.
    """
    whole = level_measurement(concurrency, wall_s, records, speculation, limits)
    ordered = sorted(records, key=lambda record: record.sent_ms)
    cut = warm_up([record.total_ms / max(1, record.output_tokens) for record in ordered])
    if cut == 0:
        return whole
    kept = ordered[cut:]
    dropped_s = kept[0].sent_ms / 1000
    rest = level_measurement(concurrency, wall_s - dropped_s, kept, None, limits)
    tokens = sum(_tokens_after(record, kept[0].sent_ms) for record in ordered)
    return whole.model_copy(
        update={
            "output_tok_per_s": tokens / (wall_s - dropped_s),
            "ttft_ms": rest.ttft_ms,
            "tpot_ms": rest.tpot_ms,
            "e2e_ms": rest.e2e_ms,
            "step_ms_p50": rest.tpot_ms.p50 * whole.acceptance_length,
            "requests_per_s": rest.requests_per_s,
            "goodput": rest.goodput,
            "dropped_requests": cut,
            "dropped_s": dropped_s,
        }
    )


def _tokens_after(record: RequestRecord, moment_ms: float) -> int:
    """Return how many tokens of a request came after a moment of its level."""
    arrived_ms, found = record.sent_ms + (record.ttft_ms or record.total_ms), 0
    for tokens, gap_ms in zip(record.tokens_per_event, (*record.gaps_ms, 0.0), strict=True):
        found += tokens if arrived_ms >= moment_ms else 0
        arrived_ms += gap_ms
    return found
