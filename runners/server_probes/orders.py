"""A server's requests → the orders of their probes: what is exchanged, by what, and where that is not probed, why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from runners.contract import EffectProof, TrialRequest
from runners.effects import LEFT_ALONE
from runners.engine_dialects import canonical
from runners.engine_dialects.node import ranks_of
from runners.server_probes import sglang_probe, vllm_probe
from runners.server_probes.batch import ProbeOrder
from runners.server_probes.choice import Choice
from runners.server_probes.passes import Exchange, Shape, shape_of, sized_exchanges, step_exchanges
from search_spaces import Scalar

ENGINES: Mapping[str, ModuleType] = {"sglang": sglang_probe, "vllm": vllm_probe}
TIMEOUT_S, COMPILE_TIMEOUT_S = 30.0, 120.0
"""Time limits of a probe: of bare torch, and of an engine's package, which compiles kernels the first time."""
ALLREDUCE = "allreduce"
"""The parameter that selects the collective in the catalogue's spaces."""


def server_orders(request: TrialRequest, release: tuple[int, ...]) -> ProbeOrder:
    """Return the probe of one request.

    Args:
        request: The trial; `of another engine than `ENGINES` nothing is probed.
        release: Version of the installed engine; empty when it is not known.
    """
    settings = request.settings
    if settings.engine not in ENGINES:
        return ProbeOrder(request=request, not_probed=f"which collectives {settings.engine} calls is not known here")
    engine = ENGINES[settings.engine]
    named = {**canonical(settings.engine, settings.options), **request.options}
    variables = {**request.environment, **settings.variables, **request.variables}
    ranks = ranks_of(request.assignment, settings)
    if ranks < 2:
        return ProbeOrder(request=request, not_probed="a single rank has nothing to exchange")
    choice: Choice = Choice(chain=("gloo",))
    if settings.device == "cuda":
        choice = engine.choose(named, variables, release).on(request.environment)
    if choice.not_probed:
        return ProbeOrder(request=request, not_probed=choice.not_probed)
    shape = shape_of(settings.model, request.environment, named.get(engine.OVERRIDES))
    levels = _levels(request, engine, named, shape)
    if levels is None:
        why = f"the size of its messages is not known: {settings.model} has no config.json on this machine"
        return ProbeOrder(request=request, not_probed=why)
    limit = engine.graph_limit(named) if settings.device == "cuda" else 0
    lowest = min(request.workload.concurrency)
    plan = {
        "device": settings.device,
        "tp": ranks,
        "chain": choice.chain,
        "levels": levels,
        "has_graphs": limit != 0,
        "is_graph_served": limit is None or lowest <= limit,
        "width": shape.hidden if shape else 1,
    }
    own = {name: text for name, text in choice.variables.items() if name not in variables or name in choice.forced}
    is_package = "." in choice.chain[0]
    return ProbeOrder(
        request=request,
        content={"plan": plan},
        variables={**own, **settings.variables, **request.variables},
        timeout_s=COMPILE_TIMEOUT_S if is_package else TIMEOUT_S,
        compiles=is_package,
        note=choice.note,
        effects=lambda answer: _effects(request, engine, choice, answer),
    )


def _levels(
    request: TrialRequest, engine: ModuleType, named: Mapping[str, Scalar], shape: Shape | None
) -> list[list[Exchange]] | None:
    """Return the calls of each level, lowest first; None where nobody says how large they are."""
    if request.probe_sizes:
        return [sized_exchanges(shape, size, request.settings.device) for size in sorted(request.probe_sizes)]
    if shape is None:
        return None
    drafting = request.settings.draft_model or named.get(engine.DRAFT)
    draft = shape_of(None if drafting is None else str(drafting), request.environment)
    rows = engine.rows(named)
    ranks = ranks_of(request.assignment, request.settings)
    return [step_exchanges(shape, draft, rows, level, ranks) for level in sorted(request.workload.concurrency)]


def _effects(
    request: TrialRequest, engine: ModuleType, choice: Choice, answer: Mapping[str, Any]
) -> Iterator[EffectProof]:
    """Yield what took the place of an all-reduce that switched itself off, or that takes no message of these sizes."""
    requested, used = request.assignment.get(ALLREDUCE), str(answer["collective"])
    if requested is None or requested in LEFT_ALONE or "." not in choice.chain[0]:
        return
    if used == choice.chain[0] and set(_summing(answer)) != {"nccl"}:
        yield EffectProof(
            parameter=ALLREDUCE, requested=requested, effective=requested, evidence=", ".join(_summing(answer))
        )
        return
    native = used == choice.chain[0]
    effective = engine.VALUES.get("nccl" if native else used, used)
    why = "it leaves messages of these sizes to NCCL" if native else "; ".join(answer["replaced"])
    yield EffectProof(parameter=ALLREDUCE, requested=requested, effective=effective, evidence=why)


def _summing(answer: Mapping[str, Any]) -> list[str]:
    """Return what summed, each once."""
    return list(dict.fromkeys(call["by"] for call in answer["calls"] if call["by"]))
