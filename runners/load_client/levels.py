"""One concurrency level: so many requests in flight until all prompts are served, one fails, or it is enough."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import aiohttp

from runners.early_stop import EarlyStop
from runners.load_client.answer import AnswerError
from runners.load_client.endpoints import Endpoint
from runners.load_client.exchange import clock, exchange
from runners.load_client.job import LoadJob, RequestRecord
from runners.load_client.prompts import Prompt


@dataclass(slots=True)
class Served:
    """What a round of requests left; `problem` names the first that failed, and with it the others were given up."""

    records: list[RequestRecord] = field(default_factory=list)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Time that this thread was computing."""
    problem: str | None = None
    is_ended_early: bool = False


async def serve_prompts(
    session: aiohttp.ClientSession,
    job: LoadJob,
    endpoint: Endpoint,
    concurrency: int,
    prompts: Sequence[Prompt],
    watch: EarlyStop | None = None,
    arrivals: Sequence[float] | None = None,
) -> Served:
    """Send the prompts in order, `concurrency` at a time, each as soon as another has ended.

    With `arrivals`, seconds from the beginning, each is sent when it is due, or late where that many are in flight.
    Once `watch` has seen enough, what is in flight is given up and left out of the records.
    """
    served = Served()
    began_at, began_cpu = clock(), time.thread_time()
    waiting = zip(itertools.count(), prompts, arrivals or itertools.repeat(None), strict=False)
    workers = [
        asyncio.create_task(_work(session, job, endpoint, concurrency, waiting, began_at, served, watch))
        for _ in range(min(concurrency, len(prompts)))
    ]
    try:
        for worker in asyncio.as_completed(workers):
            if await worker:
                served.is_ended_early = True
                break
    except AnswerError as error:
        served.problem = str(error)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    served.wall_s, served.cpu_s = clock() - began_at, time.thread_time() - began_cpu
    served.records.sort(key=lambda record: record.index)
    return served


async def _work(
    session: aiohttp.ClientSession,
    job: LoadJob,
    endpoint: Endpoint,
    concurrency: int,
    waiting: Iterator[tuple[int, Prompt, float | None]],
    level_began_at: float,
    served: Served,
    watch: EarlyStop | None,
) -> bool:
    """Keep one request in flight until none is left, or return True once the watch has seen enough.

    Raises:
        AnswerError: a request failed; its record is kept.
    """
    for index, prompt, due in waiting:
        due_at = None if due is None else level_began_at + due
        if due_at is not None:
            await asyncio.sleep(max(0.0, due_at - clock()))
        answer, error = await exchange(
            session,
            job.base_url,
            endpoint,
            prompt,
            ignore_eos=job.ignore_eos,
            timeout_s=job.request_timeout_s,
            due_at=due_at,
        )
        words = None if error is None else " ".join(str(error).split())
        record = answer.record(concurrency, index, level_began_at, clock(), words)
        served.records.append(record)
        if error is not None:
            raise AnswerError(f"request {index}: {words}") from error
        if watch is not None and watch.served(concurrency, record.output_tokens, record.total_ms / 1000):
            return True
    return False
