"""What one launch runs: sizes, knobs and workload, checked before any process starts.

Checks here concern the shape of the request only (does ``tp`` divide the heads?). Whether a backend can work on this
machine is not judged here: that is tried for real, and torch's own error tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path

ALLREDUCES = (
    "nccl",
    "symm_mem_one_shot",
    "symm_mem_two_shot",
    "reduce_scatter_all_gather",
    "all_gather_local_sum",
    "gloo",
)
"""Every value of ``--allreduce``."""

ITEM_BYTES = {"cpu": 4, "cuda": 2}
"""Bytes of a message's element: float32 on CPUs, bfloat16 on GPUs."""

MAX_DRAFT_LENGTH = 8
"""Longest draft of one speculative step, in tokens."""

CACHE_QUANTUM = 64
"""KV cache capacity is rounded up to a multiple of this many positions."""


class ConfigError(ValueError):
    """A flag, or a pair of flags, that no machine could run; the text names the flag, the value and the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSize:
    """Shape of the decoder. All counts are of the whole model, before it is split over ranks."""

    layers: int
    hidden: int
    heads: int
    head_dim: int
    experts: int
    experts_per_token: int
    expert_hidden: int
    """Inner width of one expert; 0: sized from the GPU's memory (see ``weights.expert_hidden_from_memory``)."""
    vocab: int
    """Number of token ids, a square: token ``a * side + b`` is the pair (a, b), see ``weights``."""
    draft_layers: int
    """The draft is the target's early exit after this many layers."""

    @property
    def vocab_side(self) -> int:
        """Number of classes in each half of a token id."""
        return isqrt(self.vocab)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """Closed-loop load: at each level ``concurrency`` requests are always in flight."""

    concurrency: tuple[int, ...]
    prompt_tokens: int
    output_tokens: int
    requests: int
    """Requests of each level; 0: see ``requests_at``."""
    first: int = 0
    """Level that is served before the others; 0: none of them."""
    stop_below: float = 0.0
    """Output tokens a second (geometric mean of the levels in ``hopes``) below which the load ends early; 0: never."""
    hopes: tuple[tuple[int, float], ...] = ()
    """Level and the most output tokens a second that it may turn out to serve."""

    @property
    def order(self) -> tuple[int, ...]:
        """The levels as they are served: ``first``, then the highest first."""
        return tuple(sorted(self.concurrency, key=lambda level: (level != self.first, -level)))

    def requests_at(self, concurrency: int) -> int:
        """Number of requests served at one level: as asked, by default two rounds of the level and at least four."""
        return self.requests or max(4, 2 * concurrency)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConfig:
    """One launch of the engine, fully resolved except for a memory-sized expert width."""

    device: str
    """``cpu`` or ``cuda``."""
    tp: int
    """Number of ranks (processes; on CUDA one GPU each)."""
    allreduce: str
    expert_parallel: bool
    cuda_graph_max_bs: int
    """Largest batch (sequences) captured in a CUDA graph; 0: eager."""
    draft_length: int
    """Drafted tokens of one speculative step; 0: no speculation."""
    draft_agreement: float
    """Share of token classes on which the early exit agrees with the full model, 0 to 1."""
    seed: int
    size: ModelSize
    workload: Workload
    result: Path | None

    def __post_init__(self) -> None:
        _check_size(self.size)
        _check_split(self)
        _check_workload(self.workload)
        _require(self.allreduce in ALLREDUCES, f"allreduce={self.allreduce}: choose one of {', '.join(ALLREDUCES)}")
        _require(
            0 <= self.draft_length <= MAX_DRAFT_LENGTH,
            f"draft_length={self.draft_length}: choose 0 (no speculation) to {MAX_DRAFT_LENGTH}",
        )
        _require(0 <= self.draft_agreement <= 1, f"draft_agreement={self.draft_agreement}: choose 0 to 1")
        _require(self.cuda_graph_max_bs >= 0, f"cuda_graph_max_bs={self.cuda_graph_max_bs}: choose 0 (eager) or more")
        _require(self.seed >= 0, f"seed={self.seed}: choose 0 or more")

    @property
    def graph_batch_sizes(self) -> tuple[int, ...]:
        """Batch sizes captured in CUDA graphs: the powers of two up to ``cuda_graph_max_bs``."""
        return tuple(1 << exponent for exponent in range(self.cuda_graph_max_bs.bit_length()))

    @property
    def query_rows(self) -> int:
        """Rows of one sequence in one verify pass: the last token and the draft."""
        return self.draft_length + 1

    @property
    def max_sequences(self) -> int:
        """Sequences that the KV cache must hold: the largest level or captured batch."""
        return max(*self.workload.concurrency, *self.graph_batch_sizes, 1)

    @property
    def cache_positions(self) -> int:
        """KV cache capacity of one sequence, in positions: the same for every draft length, so that attention has one
        shape."""
        needed = self.workload.prompt_tokens + self.workload.output_tokens + MAX_DRAFT_LENGTH + 1
        return -(-needed // CACHE_QUANTUM) * CACHE_QUANTUM

    @property
    def max_rows(self) -> int:
        """Most rows that one pass may send through a collective."""
        return max(self.max_sequences * self.query_rows, self.workload.prompt_tokens)

    def padded_batch(self, concurrency: int) -> int:
        """Batch that serves a level: the next captured size, or the level itself (eager) beyond the largest."""
        return min((size for size in self.graph_batch_sizes if size >= concurrency), default=concurrency)

    def with_expert_hidden(self, expert_hidden: int) -> EngineConfig:
        """This configuration with the expert width that the GPU's memory allows."""
        return replace(self, size=replace(self.size, expert_hidden=expert_hidden))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _check_size(size: ModelSize) -> None:
    _require(size.layers >= 2, f"layers={size.layers}: at least 2 (the last one corrects the draft)")
    _require(
        1 <= size.draft_layers < size.layers,
        f"draft_layers={size.draft_layers}: at least 1 and below layers={size.layers}",
    )
    for name in ("hidden", "heads", "head_dim", "experts"):
        _require(getattr(size, name) >= 1, f"{name}={getattr(size, name)}: at least 1")
    _require(
        1 <= size.experts_per_token <= size.experts,
        f"experts_per_token={size.experts_per_token}: 1 to experts={size.experts}",
    )
    side = size.vocab_side
    _require(
        side * side == size.vocab and side >= 3, f"vocab={size.vocab}: a square of at least 9, e.g. 64, 1024, 4096"
    )
    _require(
        4 * side <= size.hidden,
        f"vocab={size.vocab} needs hidden >= {4 * side} (4 directions for each of {side} classes)",
    )
    _require(-(-side // size.heads) <= size.head_dim, f"vocab={size.vocab} needs heads * head_dim >= {side}")
    _require(
        size.expert_hidden == 0 or -(-side // size.experts) <= size.expert_hidden,
        f"expert_hidden={size.expert_hidden}: 0 (from the GPU's memory) or at least {-(-side // size.experts)}",
    )


def _check_split(config: EngineConfig) -> None:
    size, tp = config.size, config.tp
    _require(tp >= 1, f"tp={tp}: at least 1")
    _require(size.heads % tp == 0, f"tp={tp} does not divide heads={size.heads}")
    _require(size.vocab % tp == 0, f"tp={tp} does not divide vocab={size.vocab} (the head is split over ranks)")
    if config.expert_parallel:
        _require(size.experts % tp == 0, f"expert_parallel=on: tp={tp} does not divide experts={size.experts}")
    _require(size.expert_hidden % tp == 0, f"tp={tp} does not divide expert_hidden={size.expert_hidden}")
    _require(
        size.expert_hidden > 0 or config.device == "cuda",
        "expert_hidden=0 (sized from the GPU's memory) needs device=cuda; give --expert-hidden",
    )


def _check_workload(workload: Workload) -> None:
    _require(len(workload.concurrency) > 0, "concurrency: name at least one level")
    _require(
        all(level >= 1 for level in workload.concurrency),
        f"concurrency={','.join(map(str, workload.concurrency))}: levels of at least 1",
    )
    _require(workload.prompt_tokens >= 4, f"prompt_tokens={workload.prompt_tokens}: at least 4")
    _require(workload.output_tokens >= 2, f"output_tokens={workload.output_tokens}: at least 2")
    _require(
        workload.first == 0 or workload.first in workload.concurrency,
        f"first_level={workload.first}: one of concurrency={','.join(map(str, workload.concurrency))}",
    )
    _require(workload.stop_below >= 0, f"stop_below={workload.stop_below}: 0 (never) or more")
    _require(
        not workload.stop_below or bool(workload.hopes),
        f"stop_below={workload.stop_below} needs hopes, such as 1=90,8=600",
    )
    for level, rate in workload.hopes:
        _require(level in workload.concurrency and rate > 0, f"hopes={level}={rate}: a served level and a rate above 0")
    _require(workload.requests >= 0, f"requests={workload.requests}: 0 (by level) or more")
