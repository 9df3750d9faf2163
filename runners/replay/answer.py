"""One modelled launch: a request goes in, a record and the lines of its log come out. Pure: no file, no clock.

Noise hangs on (node, its seed, the workload's seed, the work's identity): work that is queued again gives the same
answer, a repeat gives another one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from runners.contract import (
    EffectProof,
    Exit,
    Latency,
    LevelMeasurement,
    LogLine,
    Measurement,
    Phase,
    ProbeMeasurement,
    Rung,
    RunRecord,
    TrialRequest,
)
from runners.replay.within_launch import SimulatedLoad, with_latencies
from search_spaces import Assignment, NodeModel, assignment_key
from search_spaces.node_answers import Figures
from search_spaces.node_parts import PHASES, NoOp, PlantedFailure
from search_spaces.node_table import RecordedFailure

EXCERPT_LINES = 60
P99_SDS = 2.33
"""The 99th percentile of a normal distribution, in standard deviations."""
GREEDY_OUTPUTS = ((11, 7, 3, 19, 2, 5, 23, 13),)
"""Tokens that every modelled launch puts out: a model says nothing of what an engine generates."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of a modelled launch."""

    record: RunRecord
    log: tuple[str, ...]


def answer(node: NodeModel, request: TrialRequest) -> Answer:
    """Return the record of a launch at the request's rung (without the path of a log), and its log."""
    rung = request.rung.value
    effective, no_ops = node.answers.resolved(request.assignment)
    seconds = node.clock.healthy(effective, rung)
    failure = _failure(node, request, effective, rung)
    proofs = tuple(_proofs(request.assignment, effective, no_ops))
    if failure is not None:
        return _failed(node, request, failure, node.clock.until(failure, seconds, PHASES), proofs)
    if rung == "probe":
        return _answered(node, request, seconds, proofs, probe=_probe(node, request, effective))
    if rung == "dummy":
        return _answered(node, request, seconds, proofs)
    measurement = _measurement(node, request, effective)
    rates = [level.output_tok_per_s for level in measurement.levels]
    workload = request.workload
    seconds["serve"] = node.clock.serving(rates, workload.requests, workload.output_tokens)
    if request.stop is not None:
        measurement, seconds["serve"] = _watched(node, request, measurement, seconds["serve"])
    return _answered(node, request, seconds, proofs, measurement=measurement)


def noise(node: NodeModel, request: TrialRequest, purpose: str) -> random.Random:
    """Return a generator that hangs on the node, the workload's seed, the work's identity and the purpose."""
    identity = request.identity or assignment_key(request.assignment)
    text = f"{node.name}/{node.file.seed}/{request.workload.seed}/{identity}/{request.rung.value}/{purpose}"
    return random.Random(text)  # noqa: S311 - reproducible noise, not a secret


def _failure(node: NodeModel, request: TrialRequest, effective: Assignment, rung: str) -> PlantedFailure | None:
    for failure in node.answers.matching(effective, rung):
        if not failure.is_flaky or noise(node, request, failure.name).random() < failure.probability:
            return failure
    return None


def _proofs(requested: Assignment, effective: Assignment, no_ops: list[NoOp]) -> list[EffectProof]:
    why = "; ".join(no_op.why for no_op in no_ops)
    return [
        EffectProof(parameter=name, requested=value, effective=effective[name], evidence=f"modelled: {why}")
        for name, value in requested.items()
        if effective[name] != value
    ]


def _measurement(node: NodeModel, request: TrialRequest, effective: Assignment) -> Measurement:
    offsets, model = noise(node, request, "launch"), node.file.noise
    launch = math.exp(offsets.gauss(0.0, model.launch_sd))
    num_requests = request.workload.requests or node.file.durations.requests
    levels, calls = [], []
    for concurrency in request.workload.concurrency:
        figures = node.answers.figures(effective, concurrency)
        of_requests = math.exp(offsets.gauss(0.0, model.request_sd / math.sqrt(max(num_requests, concurrency))))
        level = _level(node, figures, launch * of_requests)
        levels.append(
            with_latencies(level, request.workload, node.file, noise(node, request, f"latency {concurrency}"))
        )
        calls.append(figures.us_per_call / launch)
    return Measurement(
        levels=tuple(levels),
        outputs=GREEDY_OUTPUTS,
        collective_us_per_call=calls[0] if calls else None,
        extra={"modelled": 1.0},
    )


def _watched(
    node: NodeModel, request: TrialRequest, measurement: Measurement, serve_s: float
) -> tuple[Measurement, float]:
    """Return what is left of a measurement under the request's stop rule, and of the time it takes."""
    durations, workload = node.file.durations, request.workload
    source = noise(node, request, "requests")
    load = SimulatedLoad(
        {level.concurrency: level for level in measurement.levels},
        workload.levels,
        num_requests=workload.requests or durations.requests,
        output_tokens=workload.output_tokens or durations.output_tokens,
        request_sd=node.file.noise.request_sd,
    )
    return load.under(request.stop, source, measurement, serve_s) if request.stop else (measurement, serve_s)


def _level(node: NodeModel, figures: Figures, speed: float) -> LevelMeasurement:
    """Return a level of a launch that is `speed` times as fast as the model without noise."""
    step_ms = figures.step_us / 1000 / speed
    tpot_ms, ttft_ms = step_ms / figures.emitted, node.file.durations.prefill_ms / speed
    slow = 1 + P99_SDS * node.file.noise.request_sd
    return LevelMeasurement(
        concurrency=figures.concurrency,
        output_tok_per_s=figures.tok_per_s * speed,
        ttft_ms=Latency(p50=ttft_ms, p99=ttft_ms * slow),
        tpot_ms=Latency(p50=tpot_ms, p99=tpot_ms * slow),
        step_ms_p50=step_ms,
        verify_steps_per_s=1000 / step_ms,
        acceptance_length=figures.emitted,
        acceptance_per_position=figures.accepted,
    )


def _probe(node: NodeModel, request: TrialRequest, effective: Assignment) -> ProbeMeasurement:
    figures = node.answers.figures(effective, min(request.workload.concurrency))
    speed = math.exp(noise(node, request, "probe").gauss(0.0, node.file.noise.probe_sd))
    return ProbeMeasurement(pass_us=figures.communication_us / speed, calls_per_pass=figures.calls_per_pass)


def _answered(
    node: NodeModel,
    request: TrialRequest,
    seconds: Mapping[str, float],
    proofs: tuple[EffectProof, ...],
    *,
    measurement: Measurement | None = None,
    probe: ProbeMeasurement | None = None,
) -> Answer:
    log = (_first_line(node, request), *_phase_lines(seconds), *_no_op_lines(proofs), ending_line(None))
    record = log_record(node.name, Exit(code=0), Phase.STOP, seconds, log, proofs)
    return Answer(
        record.model_copy(update={"measurement": measurement, "probe": probe, "passed": request.rung is Rung.DUMMY}),
        log,
    )


def _failed(
    node: NodeModel,
    request: TrialRequest,
    failure: PlantedFailure,
    seconds: Mapping[str, float],
    proofs: tuple[EffectProof, ...],
) -> Answer:
    log = (
        _first_line(node, request),
        *_phase_lines(seconds),
        *_no_op_lines(proofs),
        *failure.log,
        ending_line(failure),
    )
    planted = failure.exit
    end = Exit(code=planted.code, signal=planted.signal, requested=planted.cause != "exited", cause=planted.cause)
    return Answer(log_record(node.name, end, Phase(failure.phase), seconds, log, proofs), log)


def ending_line(failure: PlantedFailure | RecordedFailure | None) -> str:
    """Return the last line of a modelled launch's log: that it is one, and the reason for which it failed."""
    if failure is None:
        return "[replay] modelled end"
    blames = "" if failure.blames is None else f" blames={','.join(failure.blames) or 'none'}"
    return f"[replay] modelled failure: reason={failure.reason}{blames}"


def log_record(
    node: str,
    end: Exit,
    phase: Phase,
    seconds: Mapping[str, float],
    log: tuple[str, ...],
    proofs: tuple[EffectProof, ...],
) -> RunRecord:
    """Return the record of a modelled launch with this log, before anything was measured."""
    numbered = list(enumerate(log, start=1))[-EXCERPT_LINES:]
    return RunRecord(
        exit=end,
        phase=phase,
        phase_s={Phase(name): seconds[name] for name in PHASES if name in seconds},
        wall_s=sum(seconds.values()),
        log_lines=len(log),
        excerpt=tuple(LogLine(number=number, text=text) for number, text in numbered),
        effects=proofs,
        node=f"modelled:{node}",
    )


def _first_line(node: NodeModel, request: TrialRequest) -> str:
    return f"[replay] modelled launch on node {node.name}, rung {request.rung.value}: nothing runs, time is simulated"


def _phase_lines(seconds: Mapping[str, float]) -> list[str]:
    return [f"[replay] modelled phase={name} {seconds[name]:.1f} s" for name in PHASES if name in seconds]


def _no_op_lines(proofs: tuple[EffectProof, ...]) -> list[str]:
    return [f"[replay] {proof.evidence} ({proof.parameter}: {proof.effective})" for proof in proofs]
