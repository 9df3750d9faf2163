"""One concurrency level: a fixed number of requests in flight until all prompts are served, or one fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import aiohttp

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


async def serve_prompts(
    session: aiohttp.ClientSession, job: LoadJob, endpoint: Endpoint, concurrency: int, prompts: Sequence[Prompt]
) -> Served:
    """Send the prompts in order, `concurrency` at a time, each as soon as another has ended."""
    served = Served()
    began_at, began_cpu = clock(), time.thread_time()
    waiting = enumerate(prompts)
    workers = [
        asyncio.create_task(_work(session, job, endpoint, concurrency, waiting, began_at, served))
        for _ in range(min(concurrency, len(prompts)))
    ]
    try:
        for worker in asyncio.as_completed(workers):
            await worker
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
    waiting: Iterator[tuple[int, Prompt]],
    level_began_at: float,
    served: Served,
) -> None:
    """Keep one request in flight until none is left.

    Raises:
        AnswerError: a request failed; its record is kept.
    """
    for index, prompt in waiting:
        answer, error = await exchange(
            session, job.base_url, endpoint, prompt, ignore_eos=job.ignore_eos, timeout_s=job.request_timeout_s
        )
        words = None if error is None else " ".join(str(error).split())
        served.records.append(answer.record(concurrency, index, level_began_at, clock(), words))
        if error is not None:
            raise AnswerError(f"request {index}: {words}") from error
