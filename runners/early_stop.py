"""Decides, request by request, whether the rest of a load is still worth its time. Pure: no clock, no process.

A rate is tokens over the time that requests took, times the requests in flight. Its ceiling adds what the scatter of
the requests leaves open. Where the first requests of a level are slower than the rest (caches, kernels compiled late),
what came after the first round counts, if it is faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runners.measured import StoppedEarly, StopRule
from runners.student import t_quantile

CONFIDENCE = 0.99
"""One-sided, of a rate's ceiling."""
LEAST_BEYOND_FIRST_ROUND = 2
"""Requests after a level's first round before anything is concluded from the level."""

Row = tuple[int, float]
"""Tokens of a request that was served whole, and the seconds from sending it to its end."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Output tokens per second of a level, from the requests served so far."""

    estimate: float
    ceiling: float


def rate_of(concurrency: int, rows: Sequence[Row]) -> Rate:
    """Return the rate that requests point to and what it may be at most; `rows` holds two requests at least."""
    number, tokens, seconds = len(rows), sum(row[0] for row in rows), math.fsum(row[1] for row in rows)
    each = tokens / seconds
    scatter = math.fsum((row[0] - each * row[1]) ** 2 for row in rows) / (number - 1)
    error = math.sqrt(scatter / number) / (tokens / number)
    estimate = concurrency * each
    return Rate(estimate, estimate * (1 + t_quantile(CONFIDENCE, number - 1) * error))


class EarlyStop:
    """One load under a stop rule."""

    def __init__(self, rule: StopRule, requests: Mapping[int, int]) -> None:
        """Begin.

        Args:
            rule: The bar.
            requests: Level → its number of requests, in the order in which the levels are measured.
        """
        self._rule, self._requests = rule, requests
        self._rows: dict[int, list[Row]] = {}
        self._rates: dict[int, Rate] = {}
        self.stopped: StoppedEarly | None = None
        """Set once the load may end."""

    def served(self, concurrency: int, tokens: int, seconds: float) -> bool:
        """Take in a request that was served whole; return whether the load may end now."""
        if self.stopped is not None or concurrency not in self._rule.hopes:
            return self.stopped is not None
        rows = self._rows.setdefault(concurrency, [])
        rows.append((tokens, seconds))
        if len(rows) < concurrency + LEAST_BEYOND_FIRST_ROUND:
            return False
        whole, later = rate_of(concurrency, rows), rate_of(concurrency, rows[concurrency:])
        self._rates[concurrency] = Rate(max(whole.estimate, later.estimate), max(whole.ceiling, later.ceiling))
        ceiling = self._mean({level: self._ceiling(level) for level in self._rule.hopes})
        if ceiling < self._rule.below:
            evidence = self._evidence(concurrency, ceiling)
            self.stopped = evidence if evidence.saved_s > 0 else None  # the load is over anyway
        return self.stopped is not None

    def _ceiling(self, level: int) -> float:
        return self._rates[level].ceiling if level in self._rates else self._rule.hopes[level]

    def _mean(self, rates: Mapping[int, float]) -> float:
        return math.exp(math.fsum(math.log(rate) for rate in rates.values()) / len(rates))

    def _evidence(self, concurrency: int, ceiling: float) -> StoppedEarly:
        hopes = self._rule.hopes
        share = min(1.0, self._mean({level: rate.estimate / hopes[level] for level, rate in self._rates.items()}))
        expected = {level: share * hope for level, hope in hopes.items()}
        expected |= {level: rate.estimate for level, rate in self._rates.items()}
        return StoppedEarly(
            concurrency=concurrency,
            requests=len(self._rows[concurrency]),
            below=self._rule.below,
            ceiling=ceiling,
            estimate=min(self._mean(expected), ceiling),
            saved_s=self._saved_s(concurrency, expected),
        )

    def _saved_s(self, concurrency: int, expected: Mapping[int, float]) -> float:
        """Return the time that the requests not served yet would take, those in flight taken as half done.

        A level that the objective does not speak of is taken to serve a request in the time that this one takes.
        """
        rows = self._rows[concurrency]
        tokens, seconds = sum(row[0] for row in rows) / len(rows), math.fsum(row[1] for row in rows) / len(rows)
        order = list(self._requests)
        left = max(0, self._requests[concurrency] - len(rows))
        saved = (left - min(concurrency - 1, left) / 2) * seconds / concurrency
        for level in order[order.index(concurrency) + 1 :]:
            rate = expected.get(level, level * tokens / seconds)
            saved += self._requests[level] * tokens / rate
        return saved
