"""The result file: what ran, how fast, and what proves it. ``README.md`` documents the schema."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from .config import EngineConfig
from .ending import LoadWatch
from .measurement import TimedExchange, copy_bandwidth, percentile, step_exchanges, time_exchange
from .serving import LevelRecord, Request
from .stepping import Stepper
from .weights import Weights

SCHEMA = 1

MARGIN_ULPS = 8
"""A margin counts as safe above this many rounding steps (``finfo.eps``) of the largest logit."""


def build_result(
    config: EngineConfig,
    weights: Weights,
    stepper: Stepper,
    levels: list[LevelRecord],
    calls_per_step: Counter[str],
    watch: LoadWatch | None = None,
) -> dict[str, Any]:
    """The result of one launch; measures the exchanges on their own, so every rank must call it.

    A load that ended early has no figures of its exchanges, which would take time again.
    """
    collectives = stepper.decoder.collectives
    is_whole = watch is None or not watch.is_over
    exchanges = _exchange_report(config, stepper, calls_per_step) if is_whole else None
    margin, bound = margin_and_bound(levels, stepper.cache.slab.dtype)
    return {
        "schema": SCHEMA,
        "engine": _engine(config, collectives.device),
        "model": _model(config, weights),
        "resolved": _resolved(config, stepper),
        "effects": _effects(config, stepper, calls_per_step),
        "levels": [_level(config, record) for record in levels],
        "collectives": exchanges,
        "outputs": [request.output for request in levels[0].requests] if is_whole else [],
        "min_logit_margin": margin,
        "margin_bound": bound,
        "margin_violated": margin <= bound,
        "floor": _floor(config, weights, levels[0], exchanges, collectives.device) if exchanges else None,
        "stopped": watch.evidence if watch is not None else None,
    }


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write JSON so that a reader sees the old file or the whole new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w") as file:
            json.dump(result, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def margin_and_bound(levels: list[LevelRecord], dtype: torch.dtype) -> tuple[float, float]:
    """The smallest margin of any emitted token, and what rounding might reach."""
    largest_logit = max(level.largest_logit for level in levels)
    return min(level.min_margin for level in levels), MARGIN_ULPS * torch.finfo(dtype).eps * largest_logit


def _engine(config: EngineConfig, device: torch.device) -> dict[str, Any]:
    is_cuda = device.type == "cuda"
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": nccl_version() if is_cuda else None,
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if is_cuda else platform.processor() or platform.machine(),
        "tp": config.tp,
    }


def nccl_version() -> str:
    """Version of the NCCL that torch was linked with, e.g. ``2.28.9``."""
    version: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return ".".join(map(str, version))


def _model(config: EngineConfig, weights: Weights) -> dict[str, Any]:
    size = config.size
    layer = 4 * size.hidden * size.heads * size.head_dim + size.experts * size.hidden * (3 * size.expert_hidden + 1)
    return {
        "layers": size.layers,
        "hidden": size.hidden,
        "heads": size.heads,
        "head_dim": size.head_dim,
        "experts": size.experts,
        "experts_per_token": size.experts_per_token,
        "expert_hidden": size.expert_hidden,
        "vocab": size.vocab,
        "draft_layers": size.draft_layers,
        "draft_agreement": config.draft_agreement,
        "parameters": size.layers * layer + 2 * size.vocab * size.hidden,
        "weight_bytes_per_rank": weights.total_bytes,
    }


def _resolved(config: EngineConfig, stepper: Stepper) -> dict[str, Any]:
    return {
        "allreduce": config.allreduce,
        "expert_parallel": config.expert_parallel,
        "cuda_graph_max_bs": max(stepper.captured_batch_sizes, default=0),
        "draft_length": config.draft_length,
    }


def _effects(config: EngineConfig, stepper: Stepper, calls: Counter[str]) -> list[dict[str, Any]]:
    counted = ", ".join(f"{count} {op}" for op, count in sorted(calls.items()))
    captured = stepper.captured_batch_sizes
    evidence = {
        "allreduce": f"all-reduces summed by {stepper.decoder.collectives.all_reduce_backend}",
        "expert_parallel": f"calls of one decoding step: {counted}",
        "cuda_graph_max_bs": f"captured batch sizes: {captured or 'none, every step ran eagerly'}",
        "draft_length": f"{config.query_rows} rows a sequence in each verify pass",
    }
    return [
        {
            "parameter": name,
            "requested": getattr(config, name),
            "effective": effective,
            "evidence": evidence[name],
        }
        for name, effective in _resolved(config, stepper).items()
    ]


def _level(config: EngineConfig, record: LevelRecord) -> dict[str, Any]:
    ended = [request for request in record.requests if request.is_finished]
    ttft_ms = [(request.first_token - request.submitted) * 1000 for request in ended]
    tpot_ms = [_time_per_output_token_ms(request) for request in ended]
    step_ms = [seconds * 1000 for seconds in record.step_s]
    num_verdicts = len(record.accepted)
    return {
        "concurrency": record.concurrency,
        "output_tok_per_s": sum(len(request.output) for request in record.requests) / record.wall_s,
        "ttft_ms": {"p50": percentile(ttft_ms, 50), "p99": percentile(ttft_ms, 99)},
        "tpot_ms": {"p50": percentile(tpot_ms, 50), "p99": percentile(tpot_ms, 99)},
        "step_ms": {f"p{percent}": percentile(step_ms, percent) for percent in (50, 10, 90)},
        "steps": len(step_ms),
        "verify_steps_per_s": len(step_ms) / sum(record.step_s),
        "acceptance_length": 1 + sum(record.accepted) / num_verdicts,
        "acceptance_per_position": [
            sum(accepted > position for accepted in record.accepted) / num_verdicts
            for position in range(config.draft_length)
        ],
        "requests": [
            {
                "ttft_s": request.first_token - request.submitted,
                "e2e_s": request.finished - request.submitted,
                "prompt_tokens": len(request.prompt),
                "output_tokens": len(request.output),
            }
            for request in ended
        ],
    }


def _time_per_output_token_ms(request: Request) -> float:
    return (request.finished - request.first_token) * 1000 / (len(request.output) - 1)


def _exchange_report(config: EngineConfig, stepper: Stepper, calls: Counter[str]) -> dict[str, Any]:
    """The exchanges of one step at the lowest level, timed on their own in every mode that was used."""
    collectives = stepper.decoder.collectives
    batch_size = config.padded_batch(config.workload.concurrency[0])
    mode = "graph" if batch_size in stepper.captured_batch_sizes else "eager"
    exchanges = step_exchanges(config, batch_size)
    timed = {
        mode: [time_exchange(collectives, exchange, mode) for exchange in exchanges]
        for mode in dict.fromkeys(("eager", mode))
    }
    first = timed[mode][0]
    return {
        "calls_per_step": sum(calls.values()),
        "calls_by_op": dict(calls),
        "bytes_per_call": first.bytes,
        "us_per_call": first.us_p50,
        "mode": mode,
        "us_per_step": sum(exchange.count * call.us_p50 for exchange, call in zip(exchanges, timed[mode], strict=True)),
        "calls": [call.as_json() | {"count": exchange.count} for exchange, call in _pairs(exchanges, timed)],
    }


def _pairs(exchanges: list[Any], timed: dict[str, list[TimedExchange]]) -> list[tuple[Any, TimedExchange]]:
    return [pair for mode in sorted(timed) for pair in zip(exchanges, timed[mode], strict=True)]


def _floor(
    config: EngineConfig, weights: Weights, level: LevelRecord, exchanges: dict[str, Any], device: torch.device
) -> dict[str, Any] | None:
    """The time below which no step of the lowest level can fall: its bytes at copy speed and its exchanges. CUDA
    only."""
    if device.type != "cuda":
        return None
    draft_bytes = weights.bytes_per_layer * config.size.draft_layers + weights.head.nbytes
    step_bytes = weights.bytes_per_layer * config.size.layers + weights.head.nbytes + config.draft_length * draft_bytes
    bandwidth = copy_bandwidth(device)
    floor_ms = step_bytes / bandwidth * 1000 + exchanges["us_per_step"] / 1000
    measured_ms = percentile(level.step_s, 50) * 1000
    return {
        "weight_bytes_per_step": step_bytes,
        "bandwidth_bytes_per_s": bandwidth,
        "collective_us_per_step": exchanges["us_per_step"],
        "floor_ms": floor_ms,
        "measured_step_ms": measured_ms,
        "ratio": measured_ms / floor_ms,
    }
