"""What the load client is asked and what it answers: frozen models, written as JSON from process to process."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runners.contract import Frozen, LevelMeasurement, StoppedEarly, StopRule, Workload

Api = Literal["openai", "sglang"]
"""`openai`: POST /v1/completions (vLLM, and SGLang with a tokenizer); `sglang`: SGLang's own POST /generate."""

DEFAULT_PROMPT_TOKENS = 256
DEFAULT_OUTPUT_TOKENS = 128
DEFAULT_ROUNDS = 4
"""Requests of a level that names no number of them, for each request in flight."""
DEFAULT_ARRIVALS = 128
"""Requests of a level at which requests arrive by themselves, where no number is named."""
MOST_WARMUPS = 16
"""Warm-up requests of such a level."""


class LoadJob(Frozen):
    """One load on one server that is already ready: every level of the workload, one after the other."""

    base_url: str
    """Scheme, host and port of the server, as in `http://127.0.0.1:30000`."""
    api: Api
    model: str
    """The name under which the server serves the model; SGLang's own endpoint ignores it."""
    workload: Workload
    vocabulary_size: int = Field(default=32_000, ge=4)
    """Drawn prompts hold token ids below this."""
    shortest_prompt_tokens: int | None = Field(default=None, ge=1)
    """Prompt lengths are drawn evenly from here up to the workload's `prompt_tokens`; None for that length only."""
    dataset: str | None = None
    """JSONL file of prompts, each line with `prompt` (text) or `input_ids`, and perhaps `output_tokens`; None to draw
    token ids from the workload's seed."""
    longest_tokens: int | None = Field(default=None, ge=2)
    """Most tokens of a prompt and its answer together that the server takes; longer drawn prompts are cut."""
    ignore_eos: bool = True
    """True: every request generates its full length, so that all trials do the same work."""
    warmup_requests: int | None = Field(default=None, ge=0)
    """Requests sent before each level and not counted; None for as many as are in flight."""
    request_timeout_s: float = Field(default=120.0, gt=0)
    """Longest a single request may take; one that takes longer makes its level unusable."""
    stop: StopRule | None = None
    """When the load may end early; None: it is sent whole."""
    records_path: str | None = None
    """JSONL file for one record a request; None to keep them in memory only."""

    @property
    def prompt_tokens(self) -> int:
        """Length of the longest drawn prompt."""
        return self.workload.prompt_tokens or DEFAULT_PROMPT_TOKENS

    @property
    def output_tokens(self) -> int:
        """Tokens that a request generates unless its line of the dataset says otherwise."""
        return self.workload.output_tokens or DEFAULT_OUTPUT_TOKENS

    def num_requests(self, concurrency: int) -> int:
        """Return how many requests of a level are counted: never fewer than are kept in flight."""
        if self.workload.arrival_per_s is not None:
            return self.workload.requests or DEFAULT_ARRIVALS
        return max(self.workload.requests or DEFAULT_ROUNDS * concurrency, concurrency)

    def num_warmups(self, concurrency: int) -> int:
        """Return how many requests are sent before a level and not counted."""
        if self.warmup_requests is not None:
            return self.warmup_requests
        return concurrency if self.workload.arrival_per_s is None else min(concurrency, MOST_WARMUPS)


class RequestRecord(Frozen):
    """One request as the client saw it. Times are in milliseconds, on the client's clock."""

    concurrency: int
    index: int
    """Place in its level's order, from 0: the same index is the same prompt in every trial."""
    sent_ms: float
    """When it was sent, from the start of its level; where requests arrive by themselves, when it was to be sent."""
    prompt_tokens: int | None = None
    """Length of the prompt by the server's count, where it gives one."""
    output_tokens: int = 0
    """Generated tokens by the server's count."""
    ttft_ms: float | None = None
    """From sending to the first token."""
    gaps_ms: tuple[float, ...] = ()
    """Time between one event with tokens and the next."""
    tokens_per_event: tuple[int, ...] = ()
    """Tokens of each event; more than one where a verify pass accepted several, or the server sent several at once."""
    total_ms: float = 0.0
    """From sending to the end of the answer."""
    finish_reason: str | None = None
    verify_passes: int | None = None
    """Verify passes of this request, where the server counts them for each request (SGLang)."""
    accepted_histogram: tuple[int, ...] = ()
    """At place i: verify passes that accepted exactly i draft tokens, where the server tells (SGLang)."""
    output_ids: tuple[int, ...] = ()
    text_sha256: str | None = None
    """Digest of the text, from a server that names no token ids."""
    error: str | None = None
    """What went wrong; None for a request that was served whole."""

    @property
    def decode_ms(self) -> float:
        """Time from the first token to the last."""
        return sum(self.gaps_ms)

    @property
    def decoded_tokens(self) -> int:
        """Tokens that came after the first event, that is, within `decode_ms`."""
        return self.output_tokens - (self.tokens_per_event[0] if self.tokens_per_event else 0)


class Speculation(Frozen):
    """What verification did during one level, over all its requests."""

    verify_passes: int
    """Target passes that verified a draft, counted once for each sequence in them."""
    accepted_tokens: int
    """Draft tokens that were accepted. vLLM counts those that fall behind the end of their request as well."""
    drafted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] = ()
    """At place i: verify passes in which draft token i was accepted."""


class LevelLoad(Frozen):
    """One concurrency level that was served whole: its totals and its figures."""

    concurrency: int
    num_requests: int
    wall_s: float
    """From the first request sent to the last answer ended."""
    output_tokens: int
    """Sum of the server's own counts, request by request."""
    server_output_tokens: int | None = None
    """Growth of the server's token counter over the level; None where it shows none."""
    speculation: Speculation | None = None
    """None without speculation, or where the server does not tell."""
    measurement: LevelMeasurement


class LoadResult(Frozen):
    """What the load client saw. With a `problem` there is no measurement, only the levels before it."""

    levels: tuple[LevelLoad, ...] = ()
    """By concurrency, the lowest first."""
    outputs: tuple[tuple[int, ...], ...] = ()
    """First token ids of each request of the lowest level, in the order of the prompts."""
    output_digest: str | None = None
    """SHA-256 over those ids or, from a server that names none, over the texts."""
    stopped: StoppedEarly | None = None
    """Set when the load ended early: then some levels are missing, and the last one is of the requests served."""
    problem: str | None = None
    """Why the load is unusable, with the server's answer; whose fault that is, the caller decides."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures ought to know."""
    own_cpu_share: float = 0.0
    """Share of the levels' time in which the client's thread was computing; near 1, the client is the limit."""
