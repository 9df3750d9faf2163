"""From requests and counters to the figures of a level, and from a load to a measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runners.contract import Latency, LevelMeasurement, Measurement
from runners.goodput import Answered, Limit, goodput_of
from runners.load_client.job import LoadResult, RequestRecord, Speculation


class UnusableLoadError(ValueError):
    """A load with a problem was asked for its measurement; the text is the problem."""


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile by linear interpolation between the nearest values; there has to be one value at least."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def level_measurement(
    concurrency: int,
    wall_s: float,
    records: Sequence[RequestRecord],
    speculation: Speculation | None,
    limits: Sequence[Limit] = (),
) -> LevelMeasurement:
    """Return the figures of a level whose requests were all served whole.

    The first event of a request is its prefill. What follows is decoding: `passes` target passes, counted for each
    sequence, that emitted the other tokens.
    """
    decode_s = sum(record.decode_ms for record in records) / 1000
    decoded = sum(record.decoded_tokens for record in records)
    passes = decode_passes(decoded, speculation)
    acceptance_length = max(1.0, decoded / passes) if passes else 1.0
    tpot_ms = _latency([_time_per_output_token_ms(record) for record in records])
    return LevelMeasurement(
        concurrency=concurrency,
        output_tok_per_s=sum(record.output_tokens for record in records) / wall_s,
        ttft_ms=_latency([record.ttft_ms or record.total_ms for record in records]),
        tpot_ms=tpot_ms,
        # Not the median gap: servers send in bursts, and then most gaps are near zero and the others are waits.
        step_ms_p50=tpot_ms.p50 * acceptance_length,
        verify_steps_per_s=passes / decode_s if decode_s else 0.0,
        acceptance_length=acceptance_length,
        acceptance_per_position=_per_position(speculation),
        e2e_ms=_latency([record.total_ms for record in records]),
        requests_per_s=len(records) / wall_s,
        goodput=goodput_of([_answered(record) for record in records], wall_s, limits),
    )


def decode_passes(decoded_tokens: int, speculation: Speculation | None) -> int:
    """Return how many target passes emitted the tokens, counted for each sequence.

    Each emits one token of its own and those it accepted. Where drafts are rare (n-gram lookup finds nothing), passes
    without one are the rest. Where every pass verifies, the accepted tokens behind the ends of requests would make the
    rest too small, and the passes are those counted.
    """
    if speculation is None:
        return decoded_tokens
    return max(speculation.verify_passes, decoded_tokens - speculation.accepted_tokens)


def measurement_of(result: LoadResult) -> Measurement:
    """Return the measurement of a load.

    Raises:
        UnusableLoadError: the load has a problem, so that there is none.
    """
    if result.problem is not None:
        raise UnusableLoadError(result.problem)
    return Measurement(
        levels=tuple(level.measurement for level in result.levels),
        output_digest=result.output_digest,
        outputs=result.outputs,
        extra={"load_client_cpu_share": result.own_cpu_share},
        stopped=result.stopped,
    )


def _answered(record: RequestRecord) -> Answered:
    return Answered(
        ttft_ms=record.ttft_ms or record.total_ms,
        tpot_ms=_time_per_output_token_ms(record),
        e2e_ms=record.total_ms,
        output_tokens=record.output_tokens,
    )


def _latency(values_ms: Sequence[float]) -> Latency:
    return Latency(p50=percentile(values_ms, 50), p99=percentile(values_ms, 99))


def _time_per_output_token_ms(record: RequestRecord) -> float:
    if record.decoded_tokens > 0 and record.gaps_ms:
        return record.decode_ms / record.decoded_tokens
    return record.total_ms / max(1, record.output_tokens)  # all in one event: the whole time is all there is


def _per_position(speculation: Speculation | None) -> tuple[float, ...]:
    if speculation is None:
        return ()
    return tuple(count / speculation.verify_passes for count in speculation.accepted_per_position)
