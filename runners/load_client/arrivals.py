"""When requests arrive that do not wait for each other."""

from __future__ import annotations

import random
from itertools import accumulate

from runners.load_client.job import LoadJob


def arrival_times(job: LoadJob, concurrency: int, number: int) -> list[float] | None:
    """Return when each request of a level is to be sent, in seconds from its beginning; None: as soon as one ends.

    A Poisson process: the times between arrivals are exponential, and the same in every trial of a study.
    """
    rate = job.workload.arrival_per_s
    if rate is None:
        return None
    source = random.Random(f"{job.workload.seed}/{concurrency}/arrivals")  # noqa: S311 (a workload, not a secret)
    return list(accumulate(source.expovariate(rate) for _ in range(number)))
