"""Figures: percentiles, and the time and correctness of the exchanges on their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch

from .collectives import Collectives
from .config import EngineConfig
from .graphs import CapturedCall
from .process_group import dtype_of

CALLS_PER_SAMPLE = {"cpu": 1, "cuda": 20}
"""Back-to-back calls of one timing sample: on GPUs a sample of one would show the launch, not the exchange."""
SAMPLES = 25
_COPY_BYTES = 1 << 31


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile of non-empty ``values``, linear between neighbours."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One kind of collective call in a pass."""

    op: str
    """A method of ``Collectives``: all_reduce, all_to_all or all_gather."""
    numel: int
    """Elements of the tensor that each rank passes in."""
    count: int
    """Calls of one pass."""
    is_logits: bool = False
    """Logits are gathered in float32, everything else moves in the model's element type."""


@dataclass(frozen=True, slots=True)
class TimedExchange:
    """Time of one call, over ``SAMPLES`` samples, in microseconds."""

    op: str
    bytes: int
    """Bytes of the tensor that each rank passes in."""
    mode: str
    """``eager`` or ``graph``."""
    us_p50: float
    us_p10: float
    us_p90: float
    by: str = ""
    """What summed: another backend where the one asked for leaves messages of this size to it."""

    def as_json(self) -> dict[str, object]:
        """The fields, for a result line."""
        return asdict(self)


def pass_exchanges(config: EngineConfig, rows: int, layers: int) -> list[Exchange]:
    """The collective calls of one pass of ``rows`` rows through ``layers`` layers, without the gather of the logits."""
    hidden, share = config.size.hidden, -(-rows // config.tp)
    if not config.expert_parallel:
        return [Exchange("all_reduce", rows * hidden, 2 * layers)]
    dispatched = config.tp * share * (hidden + config.size.experts // config.tp)
    return [
        Exchange("all_reduce", rows * hidden, layers),
        Exchange("all_to_all", dispatched, layers),
        Exchange("all_to_all", config.tp * share * hidden, layers),
        Exchange("all_gather", share * hidden, layers),
    ]


def step_exchanges(config: EngineConfig, batch_size: int) -> list[Exchange]:
    """The collective calls of one whole decoding step: the verify pass and the draft's passes, logits included."""
    logits = config.size.vocab // config.tp
    rows = batch_size * config.query_rows
    verify = [*pass_exchanges(config, rows, config.size.layers), Exchange("all_gather", rows * logits, 1, True)]
    draft = pass_exchanges(config, batch_size, config.size.draft_layers * config.draft_length)
    if config.draft_length:
        draft.append(Exchange("all_gather", batch_size * logits, config.draft_length, True))
    return [exchange for exchange in [*verify, *draft] if exchange.count]


def time_exchange(collectives: Collectives, exchange: Exchange, mode: str) -> TimedExchange:
    """Time one collective on its own, called eagerly or replayed from a CUDA graph."""
    device = collectives.device
    num_calls = CALLS_PER_SAMPLE[device.type]
    call = getattr(collectives, exchange.op)
    shape = (collectives.num_ranks, -1) if exchange.op == "all_to_all" else (-1,)
    dtype = torch.float32 if exchange.is_logits else dtype_of(device)
    operand = torch.zeros(exchange.numel, device=device, dtype=dtype).view(shape)

    def run() -> torch.Tensor:
        for _ in range(num_calls):
            received: torch.Tensor = call(operand)
        return received

    captured = CapturedCall(run, around=collectives.capture) if mode == "graph" else None
    samples_us = [seconds / num_calls * 1e6 for seconds in _time_samples(captured.replay if captured else run, device)]
    if captured:
        captured.release()
    p50, p10, p90 = (round(percentile(samples_us, percent), 3) for percent in (50, 10, 90))
    by = collectives.last_backend if exchange.op == "all_reduce" else ""
    return TimedExchange(exchange.op, operand.nbytes, mode, p50, p10, p90, by)


def _time_samples(run: Callable[[], object], device: torch.device) -> list[float]:
    samples = []
    for _ in range(SAMPLES + 3):
        _wait_for(device)
        started = time.perf_counter()
        run()
        _wait_for(device)
        samples.append(time.perf_counter() - started)
    return samples[3:]


def verify_exchanges(collectives: Collectives, exchanges: Sequence[Exchange], mode: str = "eager") -> float:
    """The largest relative error of the exchanges on random data, called eagerly or replayed from a CUDA graph.

    Raises:
        ArithmeticError: it exceeds what rounding can cause.
    """
    # Rounding of one sum, over all its terms, with room for other orders of adding.
    tolerance = 4 * collectives.num_ranks * torch.finfo(dtype_of(collectives.device)).eps
    largest = 0.0
    for exchange in exchanges:
        error = _relative_error(collectives, exchange, mode)
        if not error <= tolerance:
            raise ArithmeticError(
                f"wrong result of {exchange.op} of {exchange.numel} elements by {collectives.last_backend} ({mode}): "
                f"relative error {error:.3g} exceeds {tolerance:.3g}"
            )
        largest = max(largest, error)
    return largest


def _relative_error(collectives: Collectives, exchange: Exchange, mode: str) -> float:
    """Largest error of one collective on random data, relative to the largest value that was expected.

    Every rank draws the operands of all ranks from seeds, so that it can compute by itself what must arrive.
    """
    num_ranks, rank, device = collectives.num_ranks, collectives.rank, collectives.device
    operands = torch.stack([_random_operand(exchange.numel, source) for source in range(num_ranks)]).to(
        dtype_of(device)
    )
    own = operands[rank].to(device)
    exact = operands.double()
    if exchange.op == "all_reduce":
        expected = exact.sum(0)
    elif exchange.op == "all_to_all":
        own, expected = own.view(num_ranks, -1), exact.view(num_ranks, num_ranks, -1)[:, rank]
    else:
        expected = exact
    received = _received(collectives, exchange.op, own, mode)
    error = (received.cpu().double() - expected).abs().max() / expected.abs().max()
    return float(error)


def _received(collectives: Collectives, op: str, own: torch.Tensor, mode: str) -> torch.Tensor:
    """What a collective returns for this rank's operand. A replay reads the operand anew: earlier runs may have
    overwritten it."""
    call: Callable[[torch.Tensor], torch.Tensor] = getattr(collectives, op)
    if mode == "eager":
        return call(own)
    operand = own.clone()
    captured = CapturedCall(lambda: call(operand), around=collectives.capture)
    operand.copy_(own)
    received = captured.replay().clone()
    _wait_for(collectives.device)
    captured.release()
    return received


def copy_bandwidth(device: torch.device) -> float:
    """Bytes a second that a large device copy reads and writes together (median of ten copies of 2 GiB)."""
    source = torch.zeros(_COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    samples = _time_samples(lambda: target.copy_(source), device)
    return 2 * _COPY_BYTES / percentile(samples, 50)


def _random_operand(numel: int, source: int) -> torch.Tensor:
    return torch.randn(numel, generator=torch.Generator().manual_seed(source + 1))


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
