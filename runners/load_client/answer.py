"""The answer to one request while it streams in: when tokens came, how many, which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from runners.load_client.job import RequestRecord

OUTPUT_IDS_KEPT = 4096
"""Token ids of one request kept in its record."""


class AnswerError(Exception):
    """An answer that cannot be counted: an error of the server, a broken stream, an event that is none."""


@dataclass(slots=True)
class Answer:
    """What a server has sent so far. Times are seconds of one monotonic clock."""

    sent_at: float
    arrivals: list[float] = field(default_factory=list)
    """When each event with tokens arrived."""
    tokens_per_event: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    text: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    """The server's own count, once it gave one."""
    finish_reason: str | None = None
    verify_passes: int | None = None
    accepted_histogram: tuple[int, ...] = ()

    def add_tokens(self, count: int, now: float) -> None:
        """Note an event that carried `count` tokens."""
        self.arrivals.append(now)
        self.tokens_per_event.append(count)

    def check(self, wanted_tokens: int | None) -> None:
        """Accept an answer that has ended.

        Args:
            wanted_tokens: Its length, or None where the model may end it earlier.

        Raises:
            AnswerError: it broke off, the server did not count it, or it is too short.
        """
        if self.finish_reason is None:
            raise AnswerError(f"the answer broke off after {sum(self.tokens_per_event)} tokens")
        if self.finish_reason in ("abort", "error"):
            raise AnswerError(f"the server gave the request up: {self.finish_reason}")
        if self.output_tokens is None:
            raise AnswerError("the server did not say how many tokens it generated")
        # A speculating engine may run past the end by a few tokens, and count them.
        if wanted_tokens is not None and self.output_tokens < wanted_tokens:
            raise AnswerError(f"{self.output_tokens} tokens came instead of {wanted_tokens} ({self.finish_reason})")

    def record(
        self, concurrency: int, index: int, level_began_at: float, ended_at: float, error: str | None
    ) -> RequestRecord:
        """Return what is kept of it."""
        gaps = zip(self.arrivals, self.arrivals[1:], strict=False)
        return RequestRecord(
            concurrency=concurrency,
            index=index,
            sent_ms=_ms(self.sent_at - level_began_at),
            prompt_tokens=self.prompt_tokens,
            output_tokens=sum(self.tokens_per_event) if self.output_tokens is None else self.output_tokens,
            ttft_ms=_ms(self.arrivals[0] - self.sent_at) if self.arrivals else None,
            gaps_ms=tuple(_ms(later - earlier) for earlier, later in gaps),
            tokens_per_event=tuple(self.tokens_per_event),
            total_ms=_ms(ended_at - self.sent_at),
            finish_reason=self.finish_reason,
            verify_passes=self.verify_passes,
            accepted_histogram=self.accepted_histogram,
            output_ids=tuple(self.ids[:OUTPUT_IDS_KEPT]),
            text_sha256=None if self.ids else hashlib.sha256(self.text.encode()).hexdigest(),
            error=error,
        )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
