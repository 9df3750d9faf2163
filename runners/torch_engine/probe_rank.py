"""One rank of a probe: join, run the exchanges of a verify pass on their own, check their sums, report their times."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .collectives import Collectives, collectives_of
from .config import ALLREDUCES
from .measurement import TimedExchange, time_exchange, verify_exchanges
from .package_collectives import (
    PACKAGE_COLLECTIVES,
    NotProbedError,
    PackageAllReduce,
    communicator_type,
    join_world_group,
    version_of,
)
from .phases import PhaseLog
from .probe_plan import ProbePlan
from .process_group import Rendezvous, extra_group, join, rank_device, yield_gloo_event_loops


# Not inference mode: engines gather objects over gloo when they register graph buffers, which fails there (torch 2.11).
@torch.no_grad()
def run_probe_rank(
    plan: ProbePlan, rendezvous: Rendezvous, rank: int, log: PhaseLog, answer: int, is_our_turn: Callable[[], bool]
) -> None:
    """Probe as one of ``plan.tp`` ranks; rank 0 writes its findings as JSON to the file descriptor ``answer``.

    Args:
        plan: What to exchange.
        rendezvous: Where the ranks meet.
        rank: Which one this is.
        log: Its log.
        answer: The file descriptor.
        is_our_turn: Waits, once everything is set up, until nobody else measures; False where nobody asks any more.
    """
    log.phase("init_distributed")
    device = rank_device(plan.device, rank)
    group = join(rendezvous, device, rank, plan.tp)
    not_probed = ""
    try:
        name, collectives, notes = _build(plan, group, device, log)
    except NotProbedError as error:
        not_probed = str(error)
    if not is_our_turn():
        return
    if not_probed:
        findings: dict[str, Any] = {"not_probed": not_probed}
    else:
        yield_gloo_event_loops()
        log.fact(allreduce=name, all_reduce_backend=collectives.all_reduce_backend)
        findings = _findings(plan, collectives, log) | {"collective": name, "replaced": notes}
        dist.barrier()
        collectives.close()
    log.phase("stop")
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        os.write(answer, json.dumps(findings | {"software": _software(device)}).encode())


def _build(
    plan: ProbePlan, group: dist.ProcessGroup, device: torch.device, log: PhaseLog
) -> tuple[str, Collectives, list[str]]:
    """The first collective of the chain that is there, its name, and why those before it are not.

    Raises:
        NotProbedError: one of an engine's package cannot be called from here.
    """
    notes: list[str] = []
    for name in plan.chain:
        if name in ALLREDUCES:
            return name, collectives_of(name, group, device, plan.max_numel), notes
        log.phase("compile")
        built = _package_collectives(name, plan.width, group, device, notes)
        if built is not None:
            return name, built, notes
    raise NotProbedError("; ".join(notes))


_OF_THE_ENGINE = re.compile(
    r"(?i)\b(?:(?:group|parallel state|environment) is not initiali[sz]ed|server args? (?:is|are) not set)"
)


def needs_the_engine(error: Exception) -> bool:
    """Whether a class only missed what its engine makes before it (SGLang 0.5.16: "world group is not initialized",
    and of its symmetric memory "Global server args is not set yet!").

    That says nothing about whether the engine itself can use it.
    """
    return _OF_THE_ENGINE.search(str(error)) is not None


def _package_collectives(
    name: str, width: int, group: dist.ProcessGroup, device: torch.device, notes: list[str]
) -> Collectives | None:
    """The exchanges with an engine's all-reduce, or None (and a note) where it switches itself off."""
    wiring, found = PACKAGE_COLLECTIVES[name], communicator_type(name)
    where = f"{wiring.type_name} of {wiring.package} {version_of(wiring.package)}"
    join_world_group(wiring.package, dist.get_rank())
    try:
        communicator = found(group=extra_group("gloo"), device=device)
    except Exception as error:
        if needs_the_engine(error):
            raise NotProbedError(f"{where} wants to be set up by its engine ({error})") from error
        if not wiring.swallows_errors:
            raise
        traceback.print_exc()
        notes.append(f"{where} cannot be set up ({type(error).__name__}: {error})")
        return None
    if getattr(communicator, "disabled", False):
        notes.append(f"{where} switches itself off here")
        return None
    return Collectives(group, device, PackageAllReduce(wiring, communicator, group, width), where)


def _findings(plan: ProbePlan, collectives: Collectives, log: PhaseLog) -> dict[str, Any]:
    exchanges = [exchange for level in plan.levels for exchange in level]
    if not plan.packages:  # what an engine compiles at the first call still belongs to the phase compile
        log.phase("warmup")
    error = verify_exchanges(collectives, exchanges)
    timed: dict[str, list[list[TimedExchange]]] = {}
    for mode in plan.modes:
        log.phase("capture_graphs" if mode == "graph" else "serve")
        if mode == "graph":
            error = max(error, verify_exchanges(collectives, exchanges, mode))
        timed[mode] = [[time_exchange(collectives, exchange, mode) for exchange in level] for level in plan.levels]
    served = timed[plan.served_mode][0]
    counts = [exchange.count for exchange in plan.levels[0]]
    return {
        "calls": [call.as_json() for levels in timed.values() for calls in levels for call in calls],
        "calls_per_pass": sum(counts),
        "pass_us": sum(count * call.us_p50 for count, call in zip(counts, served, strict=True)),
        "max_relative_error": error,
    }


def _software(device: torch.device) -> str:
    """What carried the probe out: libraries and the Python that holds them."""
    nccl = ""
    if device.type == "cuda":
        version: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
        nccl = f", NCCL {'.'.join(map(str, version))}"
    return f"torch {torch.__version__}{nccl}, Python {platform.python_version()} ({sys.executable})"
