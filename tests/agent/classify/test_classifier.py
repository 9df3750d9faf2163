"""Synthetic records and what they mean: exit facts are evidence, and the earliest root wins."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.classify import classify, decisive_patterns
from agent.outcome import Failure, OutcomeKind
from agent.reasons import REASONS, Reason
from runners import (
    Exit,
    Latency,
    Leftovers,
    LevelMeasurement,
    Measurement,
    Phase,
    ProbeMeasurement,
    RunRecord,
)

FIXTURES = Path(__file__).parent / "fixtures"
HEALTHY = (FIXTURES / "healthy.txt").read_text()
"""Lines of launches that went well and that are full of error words."""
Write = Callable[[str], str]


@pytest.fixture
def log(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "trial.log"
        path.write_text(text)
        return str(path)

    return write


def measured(*rates: float) -> Measurement:
    latency = Latency(p50=1.0, p99=2.0)
    levels = (
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
    )
    return Measurement(levels=tuple(levels))


def record(
    end: Exit, phase: Phase = Phase.SERVE, *, log_path: str | None = None, measurement: Measurement | None = None
) -> RunRecord:
    return RunRecord(exit=end, phase=phase, wall_s=1.0, log_path=log_path, measurement=measurement)


def failure(end: Exit, phase: Phase = Phase.SERVE, log_path: str | None = None) -> Failure:
    found = classify(record(end, phase, log_path=log_path)).failure
    assert found is not None
    return found


FAILED = Exit(code=1)


@pytest.mark.parametrize(
    "end",
    [Exit(code=0), Exit(code=0, cause="served"), Exit(signal=15, requested=True, cause="served")],
    ids=["exit 0", "served, exit 0", "served, stopped by us"],
)
def test_a_figure_and_a_good_end_are_a_measurement_whatever_the_log_says(end: Exit, log: Write) -> None:
    outcome = classify(record(end, measurement=measured(100.0, 400.0), log_path=log(HEALTHY)))
    assert outcome.kind is OutcomeKind.MEASURED
    assert outcome.value == pytest.approx(200.0), "geometric mean over the levels"
    assert outcome.failure is None


def test_a_probe_is_worth_its_communication_time() -> None:
    probed = RunRecord(
        exit=Exit(code=0), phase=Phase.SERVE, wall_s=1.0, probe=ProbeMeasurement(pass_us=41.5, calls_per_pass=8)
    )
    assert classify(probed).value == pytest.approx(41.5)


def test_leftovers_do_not_change_an_outcome() -> None:
    clean = record(Exit(code=0), measurement=measured(100.0))
    unclean = clean.model_copy(update={"leftovers": Leftovers(processes=(4411,))})
    assert classify(unclean) == classify(clean)


def test_an_engine_that_is_slow_to_stop_keeps_its_figures() -> None:
    late = Exit(signal=9, requested=True, cause="deadline")
    outcome = classify(record(late, Phase.STOP, measurement=measured(100.0)))
    assert (outcome.kind, bool(outcome.note)) == (OutcomeKind.MEASURED, True)


@pytest.mark.parametrize("rates", [(), (0.0,), (math.nan, 5.0), (math.inf,)])
def test_a_figure_that_is_none_is_no_measurement(rates: tuple[float, ...]) -> None:
    outcome = classify(record(Exit(code=0), measurement=measured(*rates)))
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.BENCHMARK_ERROR


def test_a_crash_after_the_measurement_is_a_failure() -> None:
    outcome = classify(record(Exit(code=None, signal=11), measurement=measured(100.0)))
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.PROCESS_KILLED


@pytest.mark.parametrize("cause", ["cancelled", "lost"])
def test_an_end_that_was_ours_interrupts_whatever_the_log_says(cause: str) -> None:
    ours = record(Exit(signal=9, cause=cause), log_path=str(FIXTURES / "M001.log"))
    assert classify(ours).kind is OutcomeKind.INTERRUPTED


def hang(cause: str) -> Exit:
    return Exit(signal=9, requested=True, cause=cause)


@pytest.mark.parametrize(
    ("end", "phase", "reason"),
    [
        (hang("no_progress"), Phase.INIT_DISTRIBUTED, Reason.COLLECTIVE_TIMEOUT),
        (hang("deadline"), Phase.SERVE, Reason.COLLECTIVE_TIMEOUT),
        (hang("deadline"), Phase.LOAD_WEIGHTS, Reason.SERVER_HANG),
        (hang("no_progress"), Phase.CAPTURE_GRAPHS, Reason.SERVER_HANG),
        (Exit(signal=9), Phase.SERVE, Reason.PROCESS_KILLED),
        (Exit(code=137), Phase.SERVE, Reason.PROCESS_KILLED),
        (Exit(signal=7), Phase.INIT_DISTRIBUTED, Reason.PROCESS_KILLED),
        (Exit(signal=6), Phase.SERVE, Reason.PROCESS_KILLED),
        (Exit(code=0), Phase.SERVE, Reason.BENCHMARK_ERROR),
        (Exit(code=0, cause="served"), Phase.SERVE, Reason.BENCHMARK_ERROR),
        (Exit(code=1), Phase.SERVE, Reason.UNKNOWN),
        (Exit(code=None), Phase.SPAWN, Reason.UNKNOWN),
    ],
)
def test_exit_facts_alone_are_trusted_little(end: Exit, phase: Phase, reason: Reason) -> None:
    found = failure(end, phase)
    assert found.reason is reason
    assert found.confidence <= 0.5
    assert found.policy is REASONS[reason].policy
    assert found.blames == ()


def test_a_hang_while_serving_keeps_the_other_explanation_open() -> None:
    assert failure(hang("no_progress")).other_reasons == (Reason.SERVER_HANG,)


def test_ranks_that_the_harness_ends_after_a_hang_were_not_killed_by_others(log: Write) -> None:
    found = failure(hang("no_progress"), log_path=log("rank 1 died: signal 15 (SIGTERM)\n"))
    assert found.reason is Reason.COLLECTIVE_TIMEOUT


def test_a_kill_with_the_kernels_word_for_it_is_the_hosts_memory(log: Write) -> None:
    kernel = log("Memory cgroup out of memory: Killed process 4411 (python)\n")
    assert failure(Exit(signal=9), log_path=kernel).reason is Reason.HOST_OOM
    assert failure(Exit(signal=11), log_path=kernel).reason is Reason.PROCESS_KILLED


def test_a_bus_error_needs_the_word_shared_memory(log: Write) -> None:
    shm = log("falling back to a /dev/shm/ based implementation\n")
    assert failure(Exit(signal=7), log_path=shm).reason is Reason.PORT_OR_STALE_PROCESS
    assert failure(Exit(signal=11), log_path=shm).reason is Reason.PROCESS_KILLED


def test_an_end_in_peace_without_figures_has_the_reason_that_the_log_shows() -> None:
    assert failure(Exit(code=0), log_path=str(FIXTURES / "K002.log")).reason is Reason.KERNEL_ERROR


def test_healthy_lines_full_of_error_words_are_no_evidence(log: Write) -> None:
    found = failure(FAILED, log_path=log(HEALTHY))
    assert (found.reason, found.rule) == (Reason.UNKNOWN, "none")


def test_no_healthy_line_ends_a_wait() -> None:
    """Runners look for decisive patterns in every line, also in those the classifier knows as benign."""
    found = [line for line in HEALTHY.splitlines() if any(re.search(each, line) for each in decisive_patterns())]
    assert found == []


@pytest.mark.parametrize("path", [None, "/nonexistent/trial.log"])
def test_a_record_without_a_log_is_judged_by_its_exit(path: str | None) -> None:
    assert failure(Exit(signal=9), log_path=path).reason is Reason.PROCESS_KILLED
