"""The server's own counters, read before and after a level."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import aiohttp
from pydantic import Field

from runners.contract import Frozen
from runners.load_client.job import RequestRecord, Speculation

_SAMPLE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)", re.MULTILINE)
_POSITION = re.compile(r'\bposition="(\d+)"')
_READ_TIMEOUT_S = 5.0
_SETTLE_S = 2.0
_SETTLE_STEP_S = 0.02


class Counters(Frozen):
    """Totals since the server started, over all its engines. None: the server does not show this one.

    Source: vLLM 0.32 v1/metrics/loggers.py and v1/spec_decode/metrics.py; SGLang 0.5.23 observability, shown with
    `--enable-metrics` alone. vLLM counts a draft for each sequence and verify pass.
    """

    generated_tokens: int | None = None
    drafts: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: dict[int, int] = Field(default_factory=dict)


_NAMES = {
    "vllm:generation_tokens_total": "generated_tokens",
    "sglang:generation_tokens_total": "generated_tokens",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "drafted_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
}
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"


def parse_counters(text: str) -> Counters:
    """Return the counters of a page in Prometheus' text format, summed over engines and ranks.

    A family that two engines' names share is of one engine: the names are never on one page.
    """
    totals: dict[str, int] = {}
    positions: dict[int, int] = {}
    for sample in _SAMPLE.finditer(text):
        name = sample["name"]
        if name == _PER_POSITION and (place := _POSITION.search(sample["labels"] or "")):
            positions[int(place[1])] = positions.get(int(place[1]), 0) + round(float(sample["value"]))
        elif name in _NAMES:
            totals[_NAMES[name]] = totals.get(_NAMES[name], 0) + round(float(sample["value"]))
    return Counters(**totals, accepted_per_position=positions)


async def read_counters(session: aiohttp.ClientSession, base_url: str) -> Counters:
    """Return the server's counters; one that has no metrics page, or does not answer there, shows none."""
    try:
        async with asyncio.timeout(_READ_TIMEOUT_S), session.get(base_url.rstrip("/") + "/metrics") as response:
            return parse_counters(await response.text()) if response.status == 200 else Counters()
    except (aiohttp.ClientError, TimeoutError, OSError):
        return Counters()


async def counters_after(
    session: aiohttp.ClientSession, base_url: str, before: Counters, output_tokens: int
) -> Counters:
    """Return the counters once they include `output_tokens` more, or what they are after two seconds.

    An engine counts a step after it has sent the step's tokens, so the last ones may be missing for a moment.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SETTLE_S
    while True:
        now = await read_counters(session, base_url)
        grown = growth(before.generated_tokens, now.generated_tokens)
        if grown is None or grown >= output_tokens or loop.time() > deadline:
            return now
        await asyncio.sleep(_SETTLE_STEP_S)


def growth(before: int | None, after: int | None) -> int | None:
    """Return by how much a counter grew, None when it was not shown both times."""
    return None if before is None or after is None else after - before


def speculation_between(before: Counters, after: Counters) -> Speculation | None:
    """Return what verification did between two readings, None when no draft was verified."""
    drafts = growth(before.drafts, after.drafts)
    if not drafts:
        return None
    places = range(max(after.accepted_per_position, default=-1) + 1)
    earlier, later = before.accepted_per_position, after.accepted_per_position
    return Speculation(
        verify_passes=drafts,
        accepted_tokens=growth(before.accepted_tokens, after.accepted_tokens) or 0,
        drafted_tokens=growth(before.drafted_tokens, after.drafted_tokens),
        accepted_per_position=tuple(later.get(place, 0) - earlier.get(place, 0) for place in places),
    )


def speculation_of(records: Sequence[RequestRecord]) -> Speculation | None:
    """Return what verification did by the requests' own counts, None when they have none."""
    passes = sum(record.verify_passes or 0 for record in records)
    if not passes:
        return None
    longest = max(len(record.accepted_histogram) for record in records)
    histogram = [
        sum(record.accepted_histogram[place] for record in records if place < len(record.accepted_histogram))
        for place in range(longest)
    ]
    # Draft tokens are accepted in order: position i was accepted wherever more than i were.
    per_position = tuple(sum(histogram[place + 1 :]) for place in range(longest - 1))
    emitted = sum(record.output_tokens - 1 for record in records)
    accepted = (
        sum(count * passes_with for count, passes_with in enumerate(histogram)) if histogram else emitted - passes
    )
    return Speculation(verify_passes=passes, accepted_tokens=accepted, accepted_per_position=per_position)
