"""The whole load: every level after its warm-up, with the server's counters around it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from runners.contract import LevelMeasurement
from runners.early_stop import EarlyStop
from runners.load_client.arrivals import arrival_times
from runners.load_client.counters import (
    Counters,
    counters_after,
    growth,
    read_counters,
    speculation_between,
    speculation_of,
)
from runners.load_client.endpoints import Endpoint, endpoint_of
from runners.load_client.exchange import TRAFFIC, open_session
from runners.load_client.figures import level_measurement
from runners.load_client.job import LevelLoad, LoadJob, LoadResult, RequestRecord, Speculation
from runners.load_client.levels import Served, serve_prompts
from runners.load_client.prompts import Prompt, prompts
from runners.load_client.steady import steady_measurement

OUTPUT_TOKENS_KEPT = 64
"""Greedy tokens of each request kept for the comparison with the baseline's."""
BUSY_SHARE = 0.7
"""From this share of CPU time on, the client itself may have slowed the figures."""
PULSE_S = 5.0
"""How often the client says that something still comes from the server."""

Say = Callable[[str], None]


@dataclass(slots=True)
class _Load:
    """A load in progress."""

    job: LoadJob
    say: Say
    levels: list[LevelLoad] = field(default_factory=list)
    first_records: list[RequestRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    at_start: Counters = field(default_factory=Counters)
    watch: EarlyStop | None = None
    sent_tokens: int = 0
    """Tokens that came since then, warm-ups included."""

    def result(self, problem: str | None = None) -> LoadResult:
        rows = tuple(record.output_ids[:OUTPUT_TOKENS_KEPT] for record in self.first_records)
        share = self.cpu_s / self.wall_s if self.wall_s else 0.0
        if share >= BUSY_SHARE:
            self.notes.append(f"the load client computed for {share:.0%} of the time: it may have been the limit")
        return LoadResult(
            levels=tuple(sorted(self.levels, key=lambda level: level.concurrency)),
            outputs=rows if any(rows) else (),
            output_digest=_digest(self.first_records),
            stopped=self.watch.stopped if self.watch is not None else None,
            problem=problem,
            notes=tuple(self.notes),
            own_cpu_share=share,
        )


def run_load(job: LoadJob, say: Say = lambda line: None) -> LoadResult:
    """Run a load and return what was seen; what a server does wrong is a `problem` of the result, never an exception.

    Args:
        job: What to send, and where to.
        say: Takes a line for each level as it ends.

    Raises:
        DatasetError: the job's dataset cannot be used.
        OSError: the records cannot be written.
    """
    return asyncio.run(_run(_Load(job, say)))


async def _run(load: _Load) -> LoadResult:
    job, endpoint = load.job, endpoint_of(load.job.api, load.job.model)
    if job.records_path is not None:
        Path(job.records_path).write_text("", encoding="utf-8")
    if job.stop is not None:
        counts = {concurrency: job.num_requests(concurrency) for concurrency in job.workload.levels}
        load.watch = EarlyStop(job.stop, counts)
    async with open_session() as session, _pulse(load.say):
        load.at_start = await read_counters(session, job.base_url)
        for concurrency, warmups, counted in prompts(job):
            warm = await serve_prompts(session, job, endpoint, concurrency, warmups)
            load.sent_tokens += _tokens(warm.records)
            if warm.problem is not None:
                return load.result(f"warm-up of level {concurrency}, {warm.problem}")
            problem = await _level(load, session, endpoint, concurrency, counted)
            if problem is not None:
                return load.result(f"level {concurrency}, {problem}")
            if load.watch is not None and load.watch.stopped is not None:
                break
    return load.result()


@asynccontextmanager
async def _pulse(say: Say) -> AsyncIterator[None]:
    """Meanwhile, say now and then that something came; who watches the log takes silence for a hang."""

    async def beat() -> None:
        told = TRAFFIC.chunks
        while True:
            await asyncio.sleep(PULSE_S)
            if TRAFFIC.chunks != told:
                told = TRAFFIC.chunks
                say(f"{told} pieces of answers so far")

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _level(
    load: _Load, session: aiohttp.ClientSession, endpoint: Endpoint, concurrency: int, counted: Sequence[Prompt]
) -> str | None:
    """Serve one level and add it to the load; return its problem if it has one."""
    base_url = load.job.base_url
    before = await counters_after(session, base_url, load.at_start, load.sent_tokens)
    arrivals = arrival_times(load.job, concurrency, len(counted))
    served = await serve_prompts(session, load.job, endpoint, concurrency, counted, load.watch, arrivals)
    load.wall_s, load.cpu_s = load.wall_s + served.wall_s, load.cpu_s + served.cpu_s
    _write_records(load.job, served.records)
    if served.problem is not None:
        return served.problem
    output_tokens = _tokens(served.records)
    load.sent_tokens += output_tokens
    after = await counters_after(session, base_url, before, output_tokens)
    level = _level_load(load.job, concurrency, served, before, after)
    load.levels.append(level)
    if concurrency == min(load.job.workload.concurrency) and not served.is_ended_early:
        load.first_records = served.records
    if level.server_output_tokens not in (None, output_tokens) and not served.is_ended_early:
        load.notes.append(
            f"level {concurrency}: {output_tokens} tokens came and the server counted {level.server_output_tokens}"
        )
    if level.measurement.dropped_requests:
        load.notes.append(
            f"level {concurrency}: the first {level.measurement.dropped_requests} requests "
            f"({level.measurement.dropped_s:.1f} s) were clearly slower than the rest and are left out as its warm-up"
        )
    rate = level.measurement.output_tok_per_s
    end = ", and clearly slower: the rest is not sent" if served.is_ended_early else ""
    load.say(f"level {concurrency}: {level.num_requests} requests, {output_tokens} tokens, {rate:.1f} tok/s{end}")
    return None


def _level_load(job: LoadJob, concurrency: int, served: Served, before: Counters, after: Counters) -> LevelLoad:
    # A request's own counts are exact; the counters include whatever else was served meanwhile.
    speculation = speculation_of(served.records) or speculation_between(before, after)
    return LevelLoad(
        concurrency=concurrency,
        num_requests=len(served.records),
        wall_s=served.wall_s,
        output_tokens=_tokens(served.records),
        server_output_tokens=growth(before.generated_tokens, after.generated_tokens),
        speculation=speculation,
        measurement=_measured(job, concurrency, served, speculation),
    )


def _measured(job: LoadJob, concurrency: int, served: Served, speculation: Speculation | None) -> LevelMeasurement:
    limits = job.workload.slo
    if served.is_ended_early:  # its time is that of the requests that count, without those given up half-way
        span_s = sum(record.total_ms for record in served.records) / 1000 / concurrency
        return level_measurement(concurrency, span_s, served.records, speculation, limits)
    return steady_measurement(concurrency, served.wall_s, served.records, speculation, limits)


def _tokens(records: Sequence[RequestRecord]) -> int:
    return sum(record.output_tokens for record in records)


def _write_records(job: LoadJob, records: Sequence[RequestRecord]) -> None:
    if job.records_path is not None:
        with Path(job.records_path).open("a", encoding="utf-8") as file:
            file.writelines(record.model_dump_json() + "\n" for record in records)


def _digest(records: Sequence[RequestRecord]) -> str | None:
    """Return the SHA-256 over the outputs of the lowest level, None while there are none."""
    if not records:
        return None
    said = [record.output_ids[:OUTPUT_TOKENS_KEPT] or record.text_sha256 for record in records]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
