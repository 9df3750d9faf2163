"""The requests of a modelled launch, one after the other, for a load that may end early."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runners.early_stop import EarlyStop
from runners.goodput import Answered, goodput_of
from runners.measured import Latency, LevelMeasurement, Measurement, StopRule
from runners.workload import Workload
from search_spaces.node_model import NodeFile


def with_latencies(
    level: LevelMeasurement, workload: Workload, node: NodeFile, source: random.Random
) -> LevelMeasurement:
    """Return a level with the time to the end of a request, its requests a second, and what of it meets the limits."""
    number = max(workload.requests or node.durations.requests, level.concurrency)
    tokens = workload.output_tokens or node.durations.output_tokens
    slowness = [math.exp(source.gauss(0.0, node.noise.request_sd)) for _ in range(number)]
    answered = [
        Answered(
            ttft_ms=level.ttft_ms.p50 * each,
            tpot_ms=level.tpot_ms.p50 * each,
            e2e_ms=(level.ttft_ms.p50 + (tokens - 1) * level.tpot_ms.p50) * each,
            output_tokens=tokens,
        )
        for each in slowness
    ]
    e2e_ms = level.ttft_ms.p50 + (tokens - 1) * level.tpot_ms.p50
    wall_s = number * tokens / level.output_tok_per_s
    return level.model_copy(
        update={
            "e2e_ms": Latency(p50=e2e_ms, p99=e2e_ms * level.tpot_ms.p99 / level.tpot_ms.p50),
            "requests_per_s": number / wall_s,
            "goodput": goodput_of(answered, wall_s, workload.slo),
        }
    )


@dataclass(frozen=True, slots=True)
class SimulatedLoad:
    """The levels of a launch as they would be measured to their end, taken apart into requests.

    The requests of a level scatter by `request_sd` around the level's rate and give exactly that rate together, so a
    load that is served whole measures what it would have measured unwatched.
    """

    levels: Mapping[int, LevelMeasurement]
    order: Sequence[int]
    """The levels as they are measured."""
    num_requests: int
    """Requests of a level, unless more are in flight."""
    output_tokens: int
    """Tokens of each request."""
    request_sd: float
    """From request to request, as a share of the rate."""

    def under(
        self, rule: StopRule, source: random.Random, whole: Measurement, serve_s: float
    ) -> tuple[Measurement, float]:
        """Return the measurement that a rule leaves of a whole one, and the seconds that it took of `serve_s`."""
        watch = EarlyStop(rule, {level: self._requests(level) for level in self.order})
        kept: list[LevelMeasurement] = []
        left = 1.0
        for level in self.order:
            seconds = self._request_s(level, source)
            number = next((n for n, each in enumerate(seconds, 1) if watch.served(level, self.output_tokens, each)), 0)
            share = self._share(level)
            if watch.stopped is None:
                kept.append(self.levels[level])
                left -= share
                continue
            left -= share * number / len(seconds)
            kept.append(self._part(level, seconds[:number]))
            stopped = watch.stopped.model_copy(update={"saved_s": left * serve_s})
            measured = tuple(sorted(kept, key=lambda each: each.concurrency))
            update = {"levels": measured, "outputs": whole.outputs if len(kept) == len(self.order) else ()}
            return whole.model_copy(update={**update, "stopped": stopped}), (1.0 - left) * serve_s
        return whole, serve_s

    def _requests(self, level: int) -> int:
        return max(self.num_requests, level)

    def _request_s(self, level: int, source: random.Random) -> list[float]:
        """Return the seconds of each request."""
        slowness = [math.exp(source.gauss(0.0, self.request_sd)) for _ in range(self._requests(level))]
        mean_s = level * self.output_tokens / self.levels[level].output_tok_per_s
        scale = mean_s * len(slowness) / math.fsum(slowness)
        return [scale * each for each in slowness]

    def _share(self, level: int) -> float:
        """Return the share of the whole load's time that a level takes."""
        times = {each: 1.0 / self.levels[each].output_tok_per_s for each in self.order}
        return times[level] / math.fsum(times.values())

    def _part(self, level: int, seconds: Sequence[float]) -> LevelMeasurement:
        """Return a level of which only these requests were served."""
        whole = self.levels[level]
        rate = level * self.output_tokens * len(seconds) / math.fsum(seconds)
        slower = whole.output_tok_per_s / rate
        return whole.model_copy(
            update={
                "output_tok_per_s": rate,
                "ttft_ms": Latency(p50=whole.ttft_ms.p50 * slower, p99=whole.ttft_ms.p99 * slower),
                "tpot_ms": Latency(p50=whole.tpot_ms.p50 * slower, p99=whole.tpot_ms.p99 * slower),
                "step_ms_p50": whole.step_ms_p50 * slower,
                "verify_steps_per_s": whole.verify_steps_per_s / slower,
            }
        )
