"""One rank's life, phase by phase."""

from __future__ import annotations

import os
from collections import Counter

import torch
import torch.distributed as dist

from .collectives import Collectives, build_collectives
from .config import EngineConfig
from .ending import LoadWatch, watch_of
from .kv_cache import KVCache
from .measurement import pass_exchanges, verify_exchanges
from .model import Decoder
from .phases import PhaseLog
from .process_group import Rendezvous, dtype_of, join, rank_device, yield_gloo_event_loops
from .result import build_result, margin_and_bound, nccl_version, write_result
from .serving import LevelRecord, make_requests, serve_level
from .stepping import Stepper
from .weights import Weights, build_weights, expert_hidden_from_memory


@torch.inference_mode()
def run_rank(config: EngineConfig, rendezvous: Rendezvous, rank: int, log: PhaseLog) -> None:
    """Serve the workload as one of ``config.tp`` ranks; rank 0 writes the log and the result."""
    log.phase("init_distributed")
    device = rank_device(config.device, rank)
    collectives = _connect(config, rendezvous, rank, device, log)
    config, weights = _load(config, rank, device, log)
    log.phase("alloc_kv")
    stepper = Stepper(config, Decoder(config, weights, collectives), _allocate_cache(config, device))
    if config.graph_batch_sizes:
        log.phase("capture_graphs")
        stepper.capture(config.graph_batch_sizes)
        log.fact(captured_batch_sizes=stepper.captured_batch_sizes)
    log.phase("warmup")
    calls_per_step = _warm_up(config, stepper, log)
    log.fact(**{f"{op}_calls_per_step": count for op, count in sorted(calls_per_step.items())})
    log.phase("ready")
    watch = watch_of(config, rank, device)
    levels = _serve(config, stepper, watch, log)
    result = build_result(config, weights, stepper, levels, calls_per_step, watch)
    _stop(stepper, log)
    if rank == 0 and config.result is not None:
        write_result(config.result, result)


def _connect(
    config: EngineConfig, rendezvous: Rendezvous, rank: int, device: torch.device, log: PhaseLog
) -> Collectives:
    for name in sorted(name for name in os.environ if name.startswith("NCCL_")):
        log.fact(**{name: os.environ[name]})
    group = join(rendezvous, device, rank, config.tp)
    collectives = build_collectives(config, group, device)
    yield_gloo_event_loops()
    log.fact(
        allreduce=config.allreduce,
        all_reduce_backend=collectives.all_reduce_backend,
        default_backend=dist.get_backend(group),
        ranks=collectives.num_ranks,
        nccl=nccl_version() if device.type == "cuda" else "none",
        expert_exchange="all_to_all" if config.expert_parallel else "none",
        draft_length=config.draft_length,
    )
    return collectives


def _load(config: EngineConfig, rank: int, device: torch.device, log: PhaseLog) -> tuple[EngineConfig, Weights]:
    log.phase("load_weights")
    if config.size.expert_hidden == 0:
        config = config.with_expert_hidden(_agreed_expert_hidden(config, device))
    weights = build_weights(config, rank, device, dtype_of(device))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    log.fact(weight_bytes_per_rank=weights.total_bytes, expert_hidden=config.size.expert_hidden)
    return config, weights


def _agreed_expert_hidden(config: EngineConfig, device: torch.device) -> int:
    """The width that fits the smallest GPU of the group."""
    memory_bytes = torch.cuda.get_device_properties(device).total_memory
    width = torch.tensor(expert_hidden_from_memory(config, memory_bytes, dtype_of(device).itemsize), device=device)
    dist.all_reduce(width, op=dist.ReduceOp.MIN)
    return int(width)


def _allocate_cache(config: EngineConfig, device: torch.device) -> KVCache:
    size = config.size
    return KVCache.allocate(
        size.layers,
        config.max_sequences,
        config.cache_positions,
        size.heads // config.tp,
        size.head_dim,
        device,
        dtype_of(device),
    )


def _warm_up(config: EngineConfig, stepper: Stepper, log: PhaseLog) -> Counter[str]:
    """Run every shape and check the exchanges on random data; returns the exchanges of one step, counted."""
    prompt = make_requests(config, 1)[0].prompt
    calls = stepper.decoder.collectives.calls
    for concurrency in config.workload.concurrency:
        stepper.prefill(0, prompt)
        for _ in range(3):
            stepper.step([0] * concurrency, [0] * concurrency)
    lowest = config.padded_batch(config.workload.concurrency[0])
    rows = lowest * config.query_rows
    error = verify_exchanges(stepper.decoder.collectives, pass_exchanges(config, rows, config.size.layers))
    log.fact(exchange_relative_error=f"{error:.3g}")
    before = calls.copy()
    stepper.run_eager(lowest)
    return calls - before


def _serve(config: EngineConfig, stepper: Stepper, watch: LoadWatch | None, log: PhaseLog) -> list[LevelRecord]:
    """Serve the levels; returns those that were served, the lowest first."""
    log.phase("serve")
    levels: list[LevelRecord] = []
    for concurrency in config.workload.order:
        if watch is not None and watch.is_over:
            break
        record = serve_level(stepper, config, concurrency, watch.take if watch is not None else None)
        num_tokens = sum(len(request.output) for request in record.requests)
        log.fact(
            concurrency=concurrency, output_tok_per_s=f"{num_tokens / record.wall_s:.1f}", steps=len(record.step_s)
        )
        levels.append(record)
    margin, bound = margin_and_bound(levels, stepper.cache.slab.dtype)
    log.fact(min_logit_margin=f"{margin:.4f}", margin_bound=f"{bound:.6f}", margin_violated=margin <= bound)
    if watch is not None and watch.is_over:
        log.fact(stopped="early, clearly slower than asked for")
    return sorted(levels, key=lambda level: level.concurrency)


def _stop(stepper: Stepper, log: PhaseLog) -> None:
    """Leave together: graphs before the communicator they use, and nobody before the others are done."""
    log.phase("stop")
    stepper.release()
    dist.barrier()
    dist.destroy_process_group()
