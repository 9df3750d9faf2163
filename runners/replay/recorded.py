"""One trial answered from a recorded table. Where a table holds several of an assignment, the work's identity picks."""

from __future__ import annotations

import random

from runners.contract import Exit, Latency, LevelMeasurement, Measurement, Phase, ProbeMeasurement, Rung, TrialRequest
from runners.replay.answer import GREEDY_OUTPUTS, Answer, ending_line, log_record
from search_spaces.node_table import NOT_RECORDED, RecordedFailure, RecordedLevel, RecordedNode, RecordedTrial

UNKNOWN = RecordedTrial(
    assignment={}, failure=RecordedFailure(reason="benchmark_error", phase="spawn", log=(NOT_RECORDED,))
)
"""What a trial comes to of which the table knows nothing: our own fault, which blames no parameter."""


def recorded_answer(node: RecordedNode, request: TrialRequest) -> Answer:
    """Return a recorded trial of the request's assignment at its rung, as the answer of a modelled launch."""
    rung = "probe" if request.rung is Rung.PROBE else "full"
    trials = node.recorded(request.assignment, rung) or [UNKNOWN]
    text = f"{node.name}/{request.workload.seed}/{request.identity}/{rung}"
    trial = random.Random(text).choice(trials)  # noqa: S311 - a reproducible choice, not a secret
    first = f"[replay] modelled launch on node {node.name}, rung {rung}: a recorded trial, nothing runs"
    failure = trial.failure
    log = (first, *(failure.log if failure else ()), ending_line(failure))
    end = Exit(code=0)
    if failure is not None:
        planted = failure.exit
        end = Exit(code=planted.code, signal=planted.signal, requested=planted.cause != "exited", cause=planted.cause)
    seconds = {str(phase): spent for phase, spent in trial.phase_s.items()}
    record = log_record(node.name, end, Phase(failure.phase) if failure else Phase.STOP, seconds, log, ())
    update = {"wall_s": trial.seconds or record.wall_s, "probe": _probe(trial)}
    return Answer(record.model_copy(update={**update, "measurement": _measurement(trial, request)}), log)


def _probe(trial: RecordedTrial) -> ProbeMeasurement | None:
    if trial.pass_us is None or trial.failure is not None:
        return None
    return ProbeMeasurement(pass_us=trial.pass_us, calls_per_pass=trial.calls_per_pass)


def _measurement(trial: RecordedTrial, request: TrialRequest) -> Measurement | None:
    """Return the levels that the request asks for, or None where one of them was not recorded."""
    found = {level.concurrency: level for level in trial.levels}
    if trial.failure is not None or not all(level in found for level in request.workload.concurrency):
        return None
    levels = tuple(_level(found[level]) for level in request.workload.concurrency)
    return Measurement(levels=levels, outputs=GREEDY_OUTPUTS, extra={"modelled": 1.0})


def _level(level: RecordedLevel) -> LevelMeasurement:
    """Return a level; its latencies are those that its rate implies."""
    tpot_ms = 1000 * level.concurrency / level.tok_per_s
    step_ms = tpot_ms * level.acceptance_length
    return LevelMeasurement(
        concurrency=level.concurrency,
        output_tok_per_s=level.tok_per_s,
        ttft_ms=Latency(p50=step_ms, p99=step_ms),
        tpot_ms=Latency(p50=tpot_ms, p99=tpot_ms),
        step_ms_p50=step_ms,
        verify_steps_per_s=1000 / step_ms,
        acceptance_length=level.acceptance_length,
    )
