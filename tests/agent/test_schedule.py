"""The draft length for each concurrency: what was measured decides, and step times say what speculation would need."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.outcome import Outcome, OutcomeKind
from agent.report import as_report, documents
from agent.schedule import Schedule, family, schedule_of
from agent.schedule_report import ScheduleCommands, schedule_commands, schedule_json, schedule_lines
from agent.store.trial import Kind, Trial
from agent.summary import StudySummary
from agent.verdict import Verdict
from runners import Command, Exit, Latency, LevelMeasurement, Measurement, Phase, RunRecord, TrialRequest
from search_spaces import Assignment, SearchSpace, assignment_key, load_space
from tests.agent.test_report import NOTHING
from tests.support.planted import FACTS, PlantedRunner, small_space
from tests.support.simulated_study import LEASE, START
from tests.support.stores import manifest, work

ACCEPTED = (0.8, 0.5, 0.2)
STEP_MS = {1: (10.0, 12.0, 13.0, 16.0), 8: (12.0, 26.0, 30.0, 36.0)}
"""Concurrency → time of a pass with 0, 1, 2, 3 drafted tokens: at 8, verifying costs more than it brings."""
SPACE = small_space()


def level(concurrency: int, drafted: int, speed: float = 1.0) -> LevelMeasurement:
    """Return what a launch measures that is so many times as fast as usual."""
    latency, step = Latency(p50=1.0, p99=2.0), STEP_MS[concurrency][drafted] / speed
    emitted = 1 + sum(ACCEPTED[:drafted])
    return LevelMeasurement(
        concurrency=concurrency,
        output_tok_per_s=concurrency * emitted * 1000 / step,
        ttft_ms=latency,
        tpot_ms=latency,
        step_ms_p50=step,
        verify_steps_per_s=1000 / step,
        acceptance_length=emitted,
        acceptance_per_position=ACCEPTED[:drafted],
    )


def launch(number: int, drafted: int, speed: float = 1.0, kind: Kind = Kind.SEARCH, **changes: object) -> Trial:
    """Return a measured launch of the default with this draft length."""
    levels = tuple(level(concurrency, drafted, speed) for concurrency in STEP_MS)
    record = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, measurement=Measurement(levels=levels))
    value = math.sqrt(levels[0].output_tok_per_s * levels[1].output_tok_per_s)
    return Trial(
        study="study",
        number=number,
        work=work(kind, draft=drafted, **changes),
        cookie="c",
        lease=LEASE,
        started_at=START,
        closed_at=START,
        outcome=Outcome(kind=OutcomeKind.MEASURED, value=value),
        record=record,
    )


def point(drafted: int) -> Assignment:
    """Return the default with this draft length."""
    return dict(work(draft=drafted).resolved)


def schedule(trials: Sequence[Trial], winner: int = 2) -> Schedule | None:
    """Return the schedule of a study in which the baseline is the default without speculation."""
    return schedule_of(SPACE, FACTS, trials, point(winner), assignment_key(point(0)))


def noisy(sd: float, seed: int = 0) -> list[Trial]:
    """Return four launches of each draft length with this noise."""
    rng = random.Random(seed)
    lengths = [drafted for _ in range(4) for drafted in range(4)]
    return [
        launch(number, drafted, math.exp(rng.gauss(0.0, sd)), Kind.REPEAT if number > 3 else Kind.SEARCH)
        for number, drafted in enumerate(lengths)
    ]


def test_each_concurrency_has_the_length_that_serves_most() -> None:
    """Two tokens alone, none in a crowd; every length that was measured is in the table."""
    found = schedule(noisy(0.01))
    assert found is not None and found.lengths == {1: 2, 8: 0}
    for each in found.levels:
        assert [cell.drafted for cell in each.cells] == [0, 1, 2, 3]
        assert each.is_sure and each.comparison is not None
        for cell in each.cells:
            truth = level(each.concurrency, cell.drafted)
            assert cell.low < truth.output_tok_per_s * 1.02 and cell.high > truth.output_tok_per_s * 0.98
            assert cell.acceptance_per_position == pytest.approx(ACCEPTED[: cell.drafted])
    alone, crowd = (each.comparison for each in found.levels)
    assert alone is not None and crowd is not None
    assert (alone.verdict, crowd.verdict) == (Verdict.GAIN, Verdict.NO_GAIN)


def test_break_even_is_the_ratio_of_step_times() -> None:
    """The acceptance from which a verify pass pays, and the time up to which it would."""
    found = schedule([launch(0, 0), launch(1, 2)])
    assert found is not None
    even = found.levels[1].break_even
    assert even is not None and not even.pays
    assert even.needed_acceptance == pytest.approx(30 / 12) and even.acceptance == pytest.approx(2.3)
    assert even.affordable_ms == pytest.approx(12 * 2.3) and even.step_ms == 30.0
    assert found.levels[0].break_even is not None and found.levels[0].break_even.pays
    line = schedule_lines(found)[1]
    assert line.startswith("concurrency 8: no speculation, 666.7 tok/s")
    assert "speculation needs 2.50 tokens a pass, it has 2.30" in line


def test_speculation_pays_where_and_only_where_it_serves_more() -> None:
    """Acceptance against break-even and rate against rate are two views of one thing."""
    found = schedule([launch(drafted, drafted) for drafted in range(4)])
    assert found is not None
    for each in found.levels:
        assert each.break_even is not None
        assert each.break_even.pays == (each.drafted > 0)


@pytest.mark.parametrize(("waiting", "says_so"), [(1.0, False), (0.5, True)])
def test_passes_and_rates_that_disagree_are_said_to(waiting: float, says_so: bool) -> None:
    """Rates hold what passes do not: prefill, and what lies between passes."""
    trials = [launch(0, 0), launch(1, 2)]
    record = trials[1].record
    assert record is not None and record.measurement is not None
    levels = tuple(
        each.model_copy(update={"output_tok_per_s": each.output_tok_per_s * waiting})
        for each in record.measurement.levels
    )
    slower = record.model_copy(update={"measurement": Measurement(levels=levels)})
    found = schedule([trials[0], trials[1].model_copy(update={"record": slower})])
    assert found is not None
    alone, crowd = schedule_lines(found)
    assert ("passes alone say the opposite" in alone) == says_so  # 2.3 tokens in 1.3 passes, then half of it
    assert "passes alone" not in crowd


def test_without_repeats_no_interval_is_claimed() -> None:
    """A length that was launched once is in the table, and its interval is unknown."""
    found = schedule([launch(0, 0), launch(1, 2)])
    assert found is not None and not found.levels[0].is_sure
    content = json.loads(json.dumps(schedule_json(found), allow_nan=False))
    assert content["levels"][0]["cells"][0]["low"] is None and content["levels"][0]["gain"] is None


def test_noise_leaves_the_choice_open_and_says_so() -> None:
    """The best length stands, as not told apart."""
    found = schedule(noisy(0.3))
    assert found is not None and not all(each.is_sure for each in found.levels)
    assert any("not told apart" in line for line in schedule_lines(found))


def test_only_what_differs_in_nothing_else_is_compared() -> None:
    """A longer draft with another backend says nothing of this one."""
    other = [launch(5, 3, backend="b"), launch(6, 1, expert=True)]
    assert schedule([launch(0, 0), *other]) is None
    found = schedule([launch(0, 0), launch(1, 2), *other])
    assert found is not None and [cell.drafted for cell in found.levels[0].cells] == [0, 2]


def test_around_a_winner_without_speculation_the_best_kind_beside_it_is_shown() -> None:
    """Then the table says what speculation would need."""
    found = schedule([launch(0, 0), launch(1, 1)], winner=0)
    assert found is not None and found.levels[1].break_even is not None
    assert found.levels[1].break_even.drafted == 1


def test_a_spaces_draft_length_may_hang_on_the_kind_of_speculation() -> None:
    """vLLM says the length beside a method, SGLang one with steps and another with tokens."""
    vllm, facts = load_space("vllm"), {"num_ranks": 2, "device": "cuda"}
    plain = vllm.normalise(vllm.default_on(facts), facts)
    drafting = [drafted_by(vllm, plain, "ngram", 3), drafted_by(vllm, plain, "ngram", 5)]
    other = drafted_by(vllm, plain, "suffix", 4)
    assert list(family(vllm, facts, drafting[0], [other, *drafting, plain])) == [0, 3, 5]
    assert list(family(vllm, facts, plain, [other, *drafting, plain])) == [0, 4]
    sglang = load_space("sglang")
    changes = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5}
    point = sglang.normalise({**sglang.default_on(facts), **changes}, facts)
    assert (point["speculative_num_draft_tokens"], sglang.num_drafted(point, facts)) == (6, 5)


def drafted_by(space: SearchSpace, plain: Assignment, method: str, tokens: int) -> Assignment:
    """Return an assignment with speculation by this method."""
    return {**plain, "speculative_method": method, "num_speculative_tokens": tokens}


class Server(PlantedRunner):
    """An engine whose command tells everything it was asked."""

    def command(self, request: TrialRequest) -> Command:
        """Return the draft length and the options as arguments."""
        options = {**request.options, "draft": request.assignment["draft"]}
        return Command(argv=("serve", *(f"--{name}={value}" for name, value in sorted(options.items()))))


def commands_on(engine: str, version: str, trials: Sequence[Trial]) -> tuple[Schedule, ScheduleCommands]:
    """Return a schedule and its commands on an engine."""
    found, plain = schedule(trials), manifest()
    assert found is not None
    settings = plain.settings.model_copy(update={"engine": plain.settings.engine.model_copy(update={"engine": engine})})
    described = plain.model_copy(update={"settings": settings, "facts": {**plain.facts, "engine_version": version}})
    return found, schedule_commands(found, Server(), described)


def test_a_schedule_is_one_command_where_the_engine_takes_one() -> None:
    """The most tokens as the fixed length, and the ranges beside it; else a command for each concurrency."""
    found, told = commands_on("vllm", "vllm 0.32.0", noisy(0.01))
    assert "num_speculative_tokens_per_batch_size=[[1, 2, 2], [3, 8, 0]]" in told.whole
    assert set(told.by_concurrency) == {1, 8} and told.by_concurrency[1] != told.by_concurrency[8]
    _, none = commands_on("torch", "torch 2.9", noisy(0.01))
    assert none.whole == "" and "torch takes one draft length" in none.why_none
    report = as_report(summary_with(found), None, none)
    assert "No single command: torch takes one draft length" in report and "For concurrency 8:" in report


def test_one_length_for_all_needs_no_schedule() -> None:
    """Its command is that of a launch."""
    trials = [launch(0, 0), launch(1, 3, 0.3)]
    _, told = commands_on("vllm", "vllm 0.32.0", trials)
    assert told.whole == told.by_concurrency[1] == told.by_concurrency[8]


def summary_with(found: Schedule) -> StudySummary:
    """Return the summary of a study with this schedule."""
    return replace(NOTHING, schedule=found)


def test_the_documents_of_a_study_with_a_schedule_hold_it() -> None:
    """As JSON, together with files that its command names."""
    found, told = commands_on("vllm", "vllm 0.32.0", noisy(0.01))
    kept = documents(summary_with(found), None, told)
    assert json.loads(kept["schedule.json"])["levels"][0]["draft_length"] == 2
    assert "## How many tokens to draft" in kept["report.md"] and "| 8 | 0 **best** |" in kept["report.md"]
