"""How a record is judged in the light of the study: the baseline's output, and whose fault a failure is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.judge import judge, lost_task
from agent.outcome import Outcome, OutcomeKind
from agent.propose.history import ATTEMPTS
from agent.reasons import Policy, Reason
from agent.store.trial import Kind, Trial
from runners import (
    Exit,
    Latency,
    LevelMeasurement,
    LogLine,
    Measurement,
    Phase,
    ProbeMeasurement,
    Rung,
    RunRecord,
)
from search_spaces import load_space
from tests.support.planted import small_space
from tests.support.simulated_study import LEASE, START
from tests.support.stores import work

TOKENS = tuple(tuple(range(row, row + 50)) for row in range(4))


def measurement(outputs: tuple[tuple[int, ...], ...] = TOKENS, rates: tuple[float, ...] = (10.0, 40.0)) -> Measurement:
    """Return what a launch measured."""
    latency = Latency(p50=1.0, p99=2.0)
    return Measurement(
        levels=tuple(
            LevelMeasurement(
                concurrency=index + 1,
                output_tok_per_s=rate,
                ttft_ms=latency,
                tpot_ms=latency,
                step_ms_p50=1.0,
                verify_steps_per_s=1.0,
                acceptance_length=1.0,
            )
            for index, rate in enumerate(rates)
        ),
        outputs=outputs,
    )


def served(found: Measurement) -> RunRecord:
    """Return the record of a launch that came to its end."""
    return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, measurement=found)


def died(folder: Path, line: str, phase: Phase = Phase.INIT_DISTRIBUTED) -> RunRecord:
    """Return the record of a launch whose log ends with a line."""
    log = folder / "engine.log"
    log.write_text(f"starting\n{line}\n", encoding="utf-8")
    return RunRecord(
        exit=Exit(code=1),
        phase=phase,
        wall_s=1.0,
        log_path=str(log),
        log_lines=2,
        excerpt=(LogLine(number=2, text=line),),
    )


def judged(
    record: RunRecord, baseline: Measurement | None = None, interruptions: int = 0, kind: Kind = Kind.SEARCH
) -> Outcome:
    """Return the outcome of a trial with this record."""
    trial = Trial(study="study", number=3, work=work(kind), cookie="c", lease=LEASE, started_at=START)
    return judge(trial, record, small_space(), [baseline] if baseline else [], interruptions)


def test_a_launch_is_worth_the_geometric_mean_over_its_levels() -> None:
    """No level outweighs another."""
    outcome = judged(served(measurement()))
    assert outcome.kind is OutcomeKind.MEASURED
    assert outcome.value == pytest.approx(20.0)


def test_output_that_differs_from_the_baselines_is_a_failure_however_fast() -> None:
    """A configuration that is fast and wrong is a failure, with no value."""
    garbage = tuple(tuple(0 for _ in row) for row in TOKENS)
    outcome = judged(served(measurement(garbage, rates=(1000.0,))), baseline=measurement())
    assert outcome.kind is OutcomeKind.FAILED and outcome.value is None
    assert outcome.failure is not None and outcome.failure.reason is Reason.WRONG_OUTPUT
    assert outcome.failure.policy is Policy.CONFIRM_ONCE


def test_output_that_equals_the_baselines_is_measured() -> None:
    """And a single near tie that fell the other way is no failure."""
    nearly = ((*TOKENS[0][:-1], -1), *TOKENS[1:])
    for outputs in (TOKENS, nearly):
        assert judged(served(measurement(outputs)), baseline=measurement()).kind is OutcomeKind.MEASURED


def test_with_simulated_acceptance_output_is_not_compared() -> None:
    """Tokens are then accepted that the model would not have put out: what differs says nothing."""
    simulated = measurement(((1, 2, 3),)).model_copy(update={"extra": {"simulated_acceptance_length": 2.5}})
    assert judged(served(simulated), baseline=measurement()).kind is OutcomeKind.MEASURED


def test_without_a_baseline_nothing_is_compared() -> None:
    """The first launch is what later ones are compared with."""
    assert judged(served(measurement(((1,),)))).kind is OutcomeKind.MEASURED


def test_a_probe_is_not_compared_with_the_baselines_output() -> None:
    """It has none, and is worth its communication time."""
    probe = ProbeMeasurement(pass_us=42.0, calls_per_pass=1.0)
    record = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, probe=probe)
    outcome = judged(record, baseline=measurement(), kind=Kind.PROBE)
    assert (outcome.kind, outcome.value) == (OutcomeKind.MEASURED, pytest.approx(42.0))


def test_a_failure_of_ours_is_interrupted_until_its_last_attempt(tmp_path: Path) -> None:
    """Retry ours: queued again, three launches at most, and only the last one counts."""
    record = died(tmp_path, "OSError: [Errno 98] Address already in use", Phase.SPAWN)
    kinds = [judged(record, interruptions=before).kind for before in range(ATTEMPTS)]
    assert kinds == [OutcomeKind.INTERRUPTED] * (ATTEMPTS - 1) + [OutcomeKind.FAILED]
    first = judged(record)
    assert first.failure is not None and first.failure.policy is Policy.RETRY_OURS


def test_a_failure_of_the_engine_counts_at_once(tmp_path: Path) -> None:
    """Whatever happened to the same work before."""
    record = died(tmp_path, "RuntimeError: Distributed package doesn't have NCCL built in")
    for before in range(ATTEMPTS + 1):
        outcome = judged(record, interruptions=before)
        assert outcome.kind is OutcomeKind.FAILED
        assert outcome.failure is not None and outcome.failure.reason is Reason.MISSING_DEPENDENCY


@pytest.mark.parametrize(
    ("engine", "line", "parameter"),
    [
        (
            "sglang",
            "launch_server.py: error: argument --cuda-graph-max-bs-decode: invalid int value",
            "cuda_graph_max_bs",
        ),
        ("sglang", "launch_server.py: error: unrecognized arguments: --mem-fraction-static 0.8", "mem_fraction_static"),
        ("vllm", "api_server.py: error: argument --cudagraph-capture-sizes: expected a number", "cuda_graph_max_bs"),
    ],
)
def test_an_option_is_blamed_on_its_parameter_whatever_the_version_calls_it(
    tmp_path: Path, engine: str, line: str, parameter: str
) -> None:
    """The dead end is then one of the space, not of a word that it does not have."""
    trial = Trial(study="study", number=3, work=work(Kind.SEARCH), cookie="c", lease=LEASE, started_at=START)
    failure = judge(trial, died(tmp_path, line, Phase.SPAWN), load_space(engine), [], 0).failure
    assert failure is not None and failure.blames == (parameter,)


def test_what_stops_the_study_costs_nothing_and_is_queued_again(tmp_path: Path) -> None:
    """A full disk blames no parameter: once it is mended, the same work has to run, the baseline above all."""
    outcome = judged(died(tmp_path, "OSError: [Errno 28] No space left on device"), interruptions=7)
    assert outcome.kind is OutcomeKind.INTERRUPTED
    assert outcome.failure is not None and outcome.failure.policy is Policy.STOP_STUDY


def test_a_cancelled_launch_says_nothing() -> None:
    """Being stopped is no failure of anybody, and uses up none of the work's attempts."""
    record = RunRecord(exit=Exit(code=None, signal=9, requested=True, cause="cancelled"), phase=Phase.SERVE, wall_s=1.0)
    outcome = judged(record)
    assert outcome.kind is OutcomeKind.INTERRUPTED and outcome.failure is None


@pytest.mark.parametrize("rung", [Rung.PROBE, Rung.DUMMY, Rung.FULL])
def test_what_was_lost_counts_as_an_attempt(rung: Rung) -> None:
    """Whatever goes without an answer each time would be asked for ever; being cancelled is nobody's attempt."""
    record = RunRecord(exit=Exit(code=None, signal=9, cause="lost"), phase=Phase.SERVE, wall_s=1.0)
    kind = Kind.SEARCH if rung is Rung.FULL else Kind.PROBE
    asked = work(kind).model_copy(update={"rung": rung})
    trial = Trial(study="study", number=3, work=asked, cookie="c", lease=LEASE, started_at=START)
    outcome = judge(trial, record, small_space(), [], 0)
    assert outcome.kind is OutcomeKind.INTERRUPTED and outcome.failure is not None
    assert outcome.failure.reason is Reason.BENCHMARK_ERROR


def test_a_lost_task_is_ours() -> None:
    """Its work is queued again, but not for ever: it carries a failure and therefore counts as an attempt."""
    outcome = lost_task("the worker died")
    trial = Trial(
        study="s", number=0, work=work(), cookie="c", lease=LEASE, started_at=START, closed_at=START, outcome=outcome
    )
    assert trial.is_our_fault and not trial.counts
    assert outcome.note == "the worker died"
