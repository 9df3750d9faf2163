"""One rank of a probe: join, run the exchanges of a verify pass on their own, check their sums, report their times."""

from __future__ import annotations

import json
import os
from typing import Any

import torch
import torch.distributed as dist

from .collectives import Collectives, build_collectives
from .config import EngineConfig
from .measurement import Exchange, TimedExchange, pass_exchanges, time_exchange, verify_exchanges
from .phases import PhaseLog
from .process_group import Rendezvous, join, rank_device, yield_gloo_event_loops


@torch.inference_mode()
def run_probe_rank(config: EngineConfig, rendezvous: Rendezvous, rank: int, log: PhaseLog, answer: int) -> None:
    """Probe as one of ``config.tp`` ranks; rank 0 writes its findings as JSON to the file descriptor ``answer``."""
    log.phase("init_distributed")
    device = rank_device(config.device, rank)
    collectives = build_collectives(config, join(rendezvous, device, rank, config.tp), device)
    yield_gloo_event_loops()
    log.fact(allreduce=config.allreduce, all_reduce_backend=collectives.all_reduce_backend)
    log.phase("warmup")
    exchanges = [exchange for level in config.workload.concurrency for exchange in level_exchanges(config, level)]
    error = verify_exchanges(collectives, exchanges)
    findings = _measure(config, collectives, log) | {"max_relative_error": error}
    log.phase("stop")
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        os.write(answer, json.dumps(findings).encode())


def level_exchanges(config: EngineConfig, concurrency: int) -> list[Exchange]:
    """The collective calls of one verify pass at a level."""
    rows = config.padded_batch(concurrency) * config.query_rows
    return pass_exchanges(config, rows, config.size.layers)


def _measure(config: EngineConfig, collectives: Collectives, log: PhaseLog) -> dict[str, Any]:
    timed: dict[str, list[list[TimedExchange]]] = {}
    for mode in ("eager", "graph") if config.graph_batch_sizes else ("eager",):
        log.phase("capture_graphs" if mode == "graph" else "serve")
        timed[mode] = [
            [time_exchange(collectives, exchange, mode) for exchange in level_exchanges(config, concurrency)]
            for concurrency in config.workload.concurrency
        ]
    lowest = config.workload.concurrency[0]
    used = "graph" if config.padded_batch(lowest) in config.graph_batch_sizes else "eager"
    counts = [exchange.count for exchange in level_exchanges(config, lowest)]
    return {
        "calls": [call.as_json() for levels in timed.values() for calls in levels for call in calls],
        "calls_per_pass": sum(counts),
        "pass_us": sum(count * call.us_p50 for count, call in zip(counts, timed[used][0], strict=True)),
    }
