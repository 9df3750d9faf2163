"""Runs the embedded torch engine: its command line, its phases, and its result read back as evidence."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runners.contract import (
    Command,
    EffectProof,
    EngineSettings,
    Latency,
    LevelMeasurement,
    Measurement,
    Phase,
    Resolution,
    Rewrite,
    Rung,
    RunRecord,
    TrialRequest,
)
from runners.goodput import Answered, Limit, goodput_of
from runners.lifecycle import LaunchPlan, launch
from runners.load_client.figures import percentile
from runners.server_probes import ProbeOrder, run_probe_batch
from search_spaces import Assignment, Facts

PHASE_PATTERNS = tuple((rf"^\[torch_engine [\d.]+\] rank=0 phase={phase.value}\b", phase) for phase in Phase)
OUTPUT_TOKENS_KEPT = 64
"""Greedy tokens of each request kept in the record; the rest stays in the result file."""


class TorchRunner:
    """Runner of the torch engine."""

    name = "torch"
    rungs = (Rung.PROBE, Rung.FULL)

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what would run: with a single rank there is nothing to exchange, so nothing to choose."""
        if settings.num_ranks > 1 or not assignment.get("expert_parallel", False):
            return Resolution(assignment=assignment)
        rewrite = Rewrite(
            parameter="expert_parallel", requested=True, resolved=False, why="a single rank holds every expert anyway"
        )
        return Resolution(assignment={**assignment, "expert_parallel": False}, rewrites=(rewrite,))

    def command(self, request: TrialRequest) -> Command:
        """Return the argument list of a full launch; what the assignment sets in the environment goes beside it."""
        argv = [sys.executable, "-m", "runners.torch_engine", *_flags(request)]
        return Command(argv=tuple(argv), env=dict(request.variables))

    def run(self, request: TrialRequest) -> RunRecord:
        """Launch the engine, wait for its end and read its result."""
        result = Path(request.artifact_dir) / "result.json"
        command = self.command(request)
        argv = (*command.argv, "--result", str(result))
        plan = LaunchPlan(phase_patterns=PHASE_PATTERNS)
        record = launch(request, Command(argv=argv, env=command.env), plan)
        content = _read_json(result)
        if content is None:
            return record
        measurement = _measurement(content, request.workload.slo)
        return record.model_copy(update={"measurement": measurement, "effects": tuple(_effects(content))})

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Run the probes one after the other from one fork server, which imports torch once."""
        server = Command(argv=(sys.executable, "-m", "runners.torch_engine.probe"))
        return run_probe_batch([_probe_order(request) for request in requests], server)


def _flags(request: TrialRequest) -> Iterable[str]:
    settings, workload = request.settings, request.workload
    flags: dict[str, object] = {"device": settings.device, "tp": settings.num_ranks, **settings.options}
    flags |= {"concurrency": ",".join(map(str, workload.concurrency)), "seed": workload.seed}
    for name in ("prompt_tokens", "output_tokens", "requests"):
        if (value := getattr(workload, name)) is not None:
            flags[name.replace("_", "-")] = value
    if workload.first is not None:
        flags["first-level"] = workload.first
    if request.stop is not None:
        hopes = ",".join(f"{level}={rate!r}" for level, rate in request.stop.hopes.items())
        flags |= {"stop-below": repr(request.stop.below), "hopes": hopes}
    flags |= request.options
    for name, value in flags.items():
        yield f"--{name}"
        yield str(value)


def _probe_order(request: TrialRequest) -> ProbeOrder:
    content = {"argv": list(_flags(request)), "sizes": list(request.probe_sizes)}
    return ProbeOrder(request=request, content=content, variables=request.variables)


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return the engine's result, or None when it wrote none (it writes the file whole, at the end)."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return content


def _measurement(content: Mapping[str, Any], limits: Sequence[Limit]) -> Measurement:
    collectives, floor = content.get("collectives") or {}, content.get("floor") or {}
    outputs = content.get("outputs") or []
    extra = {f"floor_{name}" if not name.startswith("floor") else name: value for name, value in floor.items()}
    if content.get("min_logit_margin") is not None:
        extra["min_logit_margin"] = content["min_logit_margin"]
    return Measurement(
        levels=tuple(_level(level, limits) for level in content["levels"]),
        outputs=tuple(tuple(row[:OUTPUT_TOKENS_KEPT]) for row in outputs),
        collective_us_per_call=_us_per_call(collectives),
        extra={name: float(value) for name, value in extra.items() if isinstance(value, int | float)},
        stopped=content.get("stopped"),
    )


def _us_per_call(collectives: Mapping[str, Any]) -> float | None:
    """Return the time of one call in the mode that was served in."""
    value = collectives.get("us_per_call")
    if isinstance(value, Mapping):
        value = value.get("graph") if value.get("graph") is not None else value.get("eager")
    return float(value) if isinstance(value, int | float) else None


def _level(level: Mapping[str, Any], limits: Sequence[Limit]) -> LevelMeasurement:
    requests = [_answered(each) for each in level["requests"]]
    wall_s = sum(each.output_tokens for each in requests) / level["output_tok_per_s"]
    e2e_ms = sorted(each.e2e_ms for each in requests)
    return LevelMeasurement(
        concurrency=level["concurrency"],
        output_tok_per_s=level["output_tok_per_s"],
        ttft_ms=Latency(p50=level["ttft_ms"]["p50"], p99=level["ttft_ms"]["p99"]),
        tpot_ms=Latency(p50=level["tpot_ms"]["p50"], p99=level["tpot_ms"]["p99"]),
        step_ms_p50=level["step_ms"]["p50"],
        verify_steps_per_s=level["verify_steps_per_s"],
        acceptance_length=level["acceptance_length"],
        acceptance_per_position=tuple(level["acceptance_per_position"]),
        e2e_ms=Latency(p50=percentile(e2e_ms, 50), p99=percentile(e2e_ms, 99)),
        requests_per_s=len(requests) / wall_s,
        goodput=goodput_of(requests, wall_s, limits),
    )


def _answered(request: Mapping[str, Any]) -> Answered:
    ttft_ms, e2e_ms, tokens = request["ttft_s"] * 1000, request["e2e_s"] * 1000, request["output_tokens"]
    tpot_ms = (e2e_ms - ttft_ms) / max(1, tokens - 1)
    return Answered(ttft_ms=ttft_ms, tpot_ms=tpot_ms, e2e_ms=e2e_ms, output_tokens=tokens)


def _effects(content: Mapping[str, Any]) -> Iterable[EffectProof]:
    for effect in content.get("effects") or ():
        yield EffectProof(**{name: effect[name] for name in ("parameter", "requested", "effective", "evidence")})
