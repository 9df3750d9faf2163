"""Serve one level of the workload: a closed loop that keeps ``concurrency`` requests in flight, and what it
measured."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .config import EngineConfig
from .speculation import Verdict
from .stepping import Stepper


@dataclass(slots=True)
class Request:
    """One request and its times, in seconds on the monotonic clock."""

    prompt: list[int]
    output: list[int] = field(default_factory=list)
    submitted: float = 0.0
    first_token: float = 0.0
    finished: float = 0.0

    @property
    def is_finished(self) -> bool:
        """Whether all of its tokens were generated."""
        return self.finished > 0.0


@dataclass(slots=True)
class LevelRecord:
    """What one level showed."""

    concurrency: int
    requests: list[Request]
    wall_s: float = 0.0
    step_s: list[float] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    """Accepted drafted tokens of every sequence in every step."""
    min_margin: float = float("inf")
    """Smallest margin of any emitted token (best logit minus second best)."""
    largest_logit: float = 0.0

    def observe(self, verdict: Verdict) -> None:
        """Take in the margins of one verdict."""
        self.min_margin = min(self.min_margin, *verdict.margins)
        self.largest_logit = max(self.largest_logit, verdict.largest_logit)


def make_requests(config: EngineConfig, count: int) -> list[Request]:
    """Seeded random prompts; request i is the same at every level and for every knob."""
    draw = random.Random(config.seed)  # noqa: S311 - prompts, not secrets
    return [
        Request([draw.randrange(config.size.vocab) for _ in range(config.workload.prompt_tokens)]) for _ in range(count)
    ]


class _Slots:
    """The requests in flight, by slot of the cache."""

    def __init__(self, stepper: Stepper, record: LevelRecord, output_tokens: int) -> None:
        self.stepper, self.record, self.output_tokens = stepper, record, output_tokens
        self.waiting = list(reversed(record.requests))
        self.active: list[Request | None] = [None] * record.concurrency
        self._ended: list[Request] = []

    def take_ended(self) -> list[Request]:
        """The requests that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def refill(self) -> None:
        """Give every free slot the next request. A request counts as submitted the moment a slot is free for it."""
        free = [slot for slot, request in enumerate(self.active) if request is None]
        admitted = {slot: self.waiting.pop() for slot in free if self.waiting}
        now = time.monotonic()
        for request in admitted.values():
            request.submitted = now
        for slot, request in admitted.items():
            verdict = self.stepper.prefill(slot, request.prompt)
            request.first_token = time.monotonic()
            self.active[slot] = request
            self._append(slot, request, verdict)

    def step(self) -> None:
        """One decoding step of all slots; an idle slot computes on an empty sequence and is ignored."""
        tokens = [0 if request is None else request.output[-1] for request in self.active]
        lengths = [0 if request is None else len(request.prompt) + len(request.output) - 1 for request in self.active]
        started = time.monotonic()
        verdicts = self.stepper.step(tokens, lengths)
        self.record.step_s.append(time.monotonic() - started)
        for slot, (request, verdict) in enumerate(zip(self.active, verdicts, strict=True)):
            if request is not None:
                self.record.accepted.append(verdict.accepted)
                self._append(slot, request, verdict)

    def _append(self, slot: int, request: Request, verdict: Verdict) -> None:
        self.record.observe(verdict)
        request.output.extend(verdict.emitted[: self.output_tokens - len(request.output)])
        if len(request.output) == self.output_tokens:
            request.finished = time.monotonic()
            self._ended.append(request)
            self.active[slot] = None

    @property
    def is_busy(self) -> bool:
        """Whether any request is in flight."""
        return any(request is not None for request in self.active)


def serve_level(
    stepper: Stepper,
    config: EngineConfig,
    concurrency: int,
    is_enough: Callable[[int, Sequence[Request]], bool] | None = None,
) -> LevelRecord:
    """Serve all requests of one level, or those until ``is_enough`` says so of the level and what has just ended."""
    record = LevelRecord(concurrency, make_requests(config, config.workload.requests_at(concurrency)))
    slots = _Slots(stepper, record, config.workload.output_tokens)
    started = time.monotonic()
    slots.refill()
    while slots.is_busy:
        slots.step()
        if is_enough is not None and (ended := slots.take_ended()) and is_enough(concurrency, ended):
            break
        slots.refill()
    record.wall_s = time.monotonic() - started
    return record
