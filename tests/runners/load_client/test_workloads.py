"""Built-in lengths, arrivals of their own, and the warm-up of a level."""

from __future__ import annotations

import itertools
import random
import statistics
from pathlib import Path

import pytest

from runners import Workload
from runners.load_client import LoadJob, RequestRecord
from runners.load_client.arrivals import arrival_times
from runners.load_client.lengths import BUILT_IN, SHARES
from runners.load_client.prompts import DatasetError, digest_of, prompts
from runners.load_client.steady import steady_measurement

DRAWN = 4000


def job(workload: Workload, **more: object) -> LoadJob:
    fields = {"base_url": "http://127.0.0.1:1", "api": "openai", "model": "m", "workload": workload}
    return LoadJob.model_validate({**fields, **more})


@pytest.mark.parametrize("name", BUILT_IN)
def test_lengths_have_the_quantiles_of_their_source(name: str) -> None:
    """Prompt and answer, within the chance of so many draws."""
    source, found = random.Random(1), BUILT_IN[name]
    drawn = [found.draw(source) for _ in range(DRAWN)]
    for quantiles, lengths in zip((found.prompt, found.output), zip(*drawn, strict=True), strict=True):
        assert max(lengths) == pytest.approx(quantiles[-1], rel=0.05)
        for share, quantile in zip(SHARES, quantiles, strict=True):
            assert sorted(lengths)[int(share * DRAWN)] == pytest.approx(quantile, rel=0.15, abs=1)


def test_a_built_in_workload_is_the_same_in_every_trial_and_at_no_two_places() -> None:
    workload = Workload(concurrency=(2, 4), lengths="code", requests=6)
    first, again = (list(prompts(job(workload))) for _ in range(2))
    assert first == again != list(prompts(job(workload.model_copy(update={"seed": 1}))))
    sent = [prompt.input_ids for _, warm, counted in first for prompt in (*warm, *counted)]
    assert len(set(sent)) == len(sent)
    assert len({len(ids or ()) for ids in sent}) > 5


def test_prompts_leave_room_for_their_answers_where_the_model_is_short() -> None:
    found = job(Workload(concurrency=(4,), lengths="long-context", requests=50), longest_tokens=2000)
    for _, _, counted in prompts(found):
        for prompt in counted:
            assert prompt.input_ids is not None and len(prompt.input_ids) + prompt.output_tokens <= 2000


def test_arrivals_are_a_poisson_process_of_the_seed() -> None:
    """Mean and standard deviation of the times between them are equal, and each trial has the same ones."""
    found = job(Workload(concurrency=(64,), arrival_per_s=4.0))
    times = arrival_times(found, 64, 4000)
    assert times is not None and times == arrival_times(found, 64, 4000)
    between = [later - earlier for earlier, later in itertools.pairwise([0.0, *times])]
    assert statistics.fmean(between) == pytest.approx(0.25, rel=0.06)
    assert statistics.stdev(between) == pytest.approx(0.25, rel=0.1)
    assert arrival_times(job(Workload(concurrency=(64,))), 64, 10) is None
    assert (found.num_requests(64), found.num_warmups(64)) == (128, 16)


def test_a_dataset_that_changed_since_the_study_began_is_refused(tmp_path: Path) -> None:
    """Its trials would not be comparable."""
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "a", "output_tokens": 3}\n')
    workload = Workload(concurrency=(1,), requests=1, dataset=str(path), dataset_sha256=digest_of(path))
    ((_, _, (prompt,)),) = prompts(job(workload, dataset=str(path)))
    assert (prompt.text, prompt.output_tokens) == ("a", 3)
    path.write_text('{"prompt": "b"}\n')
    with pytest.raises(DatasetError, match="changed since the study began"):
        list(prompts(job(workload, dataset=str(path))))


def record(index: int, sent_ms: float, token_ms: float, tokens: int = 10) -> RequestRecord:
    return RequestRecord(
        concurrency=1,
        index=index,
        sent_ms=sent_ms,
        output_tokens=tokens,
        ttft_ms=token_ms,
        gaps_ms=(token_ms,) * (tokens - 1),
        tokens_per_event=(1,) * tokens,
        total_ms=token_ms * tokens,
    )


def test_a_level_is_measured_without_its_warm_up() -> None:
    """Three requests at a third of the speed, then twenty-seven of 100 ms: what is left has its own rate."""
    sent, records = 0.0, []
    for index in range(30):
        token_ms = 30.0 if index < 3 else 10.0
        records.append(record(index, sent, token_ms))
        sent += 10 * token_ms
    found = steady_measurement(1, sent / 1000, records, None)
    assert (found.dropped_requests, found.dropped_s) == (3, pytest.approx(0.9))
    assert found.output_tok_per_s == pytest.approx(100.0, rel=0.01)
    assert (found.tpot_ms.p99, found.requests_per_s) == (pytest.approx(10.0), pytest.approx(10.0))


def test_tokens_of_dropped_requests_that_came_later_count_in_the_rate() -> None:
    """The server made them beside the others: one slow request of a second beside fast ones of a tenth."""
    late = [record(0, 0.0, 100.0)]
    others = [record(index, 100.0 * index, 10.0) for index in range(1, 20)]
    found = steady_measurement(2, 2.0, [*late, *others], None)
    assert (found.dropped_requests, found.dropped_s) == (2, pytest.approx(0.2))
    # 180 tokens of the requests that stay and nine of the slow one came in the 1.8 s that are left.
    assert found.output_tok_per_s == pytest.approx((180 + 9) / 1.8, rel=0.01)


def test_a_steady_level_is_measured_whole() -> None:
    records = [record(index, 100.0 * index, 10.0) for index in range(30)]
    found = steady_measurement(1, 3.0, records, None)
    assert (found.dropped_requests, found.dropped_s, found.output_tok_per_s) == (0, 0.0, pytest.approx(100.0))
