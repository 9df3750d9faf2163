"""What the load client promises, in one body for every way that an engine streams."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runners import Workload
from runners.load_client import (
    Api,
    LoadJob,
    NotServedError,
    RequestRecord,
    UnusableLoadError,
    measurement_of,
    run_load,
    serve_one_completion,
)
from tests.support.stub_servers import StubServer, stub_server

WORKLOAD = Workload(concurrency=(1, 4), prompt_tokens=24, output_tokens=40, requests=10, seed=3)
DRAFT_TOKENS, ACCEPTANCE = 3, 0.7
VOCABULARY = 500


@dataclass(frozen=True)
class Way:
    """A way to stream: the endpoint, and the stub's options that make it."""

    api: Api
    options: dict[str, object]


WAYS = {
    "vllm": Way("openai", {"metrics": "vllm"}),
    "sglang": Way("sglang", {"metrics": "sglang"}),
    "sglang incremental": Way("sglang", {"metrics": "none", "incremental": True}),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def way(request: pytest.FixtureRequest) -> Way:
    """Every way."""
    found = request.param
    assert isinstance(found, Way)
    return found


@pytest.fixture
def speculating(way: Way) -> Iterator[StubServer]:
    """Yield a healthy server that speculates."""
    options = way.options | {"draft_tokens": DRAFT_TOKENS, "acceptance": ACCEPTANCE, "vocabulary": VOCABULARY}
    with stub_server(**options) as server:
        yield server


def job_for(way: Way, server: StubServer, **changes: object) -> LoadJob:
    fields = {"base_url": server.base_url, "api": way.api, "model": "stub", "vocabulary_size": VOCABULARY}
    return LoadJob.model_validate({**fields, "workload": WORKLOAD, **changes})


def read_records(path: Path) -> list[RequestRecord]:
    return [RequestRecord.model_validate_json(line) for line in path.read_text().splitlines()]


def test_every_level_is_measured_and_counted_exactly(way: Way, speculating: StubServer) -> None:
    """The client's count of tokens is the sum asked for, and equals the server's counter where one is shown."""
    result = run_load(job_for(way, speculating))
    assert result.problem is None
    assert [level.concurrency for level in result.levels] == [1, 4]
    for level in result.levels:
        assert level.output_tokens == 10 * 40
        assert level.server_output_tokens == (None if way.options["metrics"] == "none" else level.output_tokens)
        assert level.measurement.output_tok_per_s == pytest.approx(level.output_tokens / level.wall_s)
    assert 0 < result.own_cpu_share <= 1.5


def test_warm_up_and_other_levels_are_in_no_count(way: Way, speculating: StubServer) -> None:
    """A level's verify passes are those of its own requests, whatever was sent before."""
    alone = run_load(job_for(way, speculating, workload=WORKLOAD.model_copy(update={"concurrency": (4,)})))
    after = run_load(job_for(way, speculating, warmup_requests=7))
    assert alone.levels[-1].speculation == after.levels[-1].speculation


def test_acceptance_is_that_of_the_server(way: Way, speculating: StubServer) -> None:
    """Length and positions lie where the dial of the stub puts them; the length is tokens for each target pass."""
    level = run_load(job_for(way, speculating)).levels[-1]
    figures, speculation = level.measurement, level.speculation
    assert speculation is not None
    expected = [ACCEPTANCE ** (place + 1) for place in range(DRAFT_TOKENS)]
    assert figures.acceptance_per_position == pytest.approx(expected, abs=0.12)
    assert figures.acceptance_length == pytest.approx((level.output_tokens - 10) / speculation.verify_passes)
    assert 2.0 < figures.acceptance_length < 1 + sum(expected) + 0.3
    assert speculation.accepted_tokens == sum(speculation.accepted_per_position)


def test_without_speculation_each_pass_emits_one_token(way: Way) -> None:
    """No draft, no positions, length 1."""
    with stub_server(**way.options) as server:
        level = run_load(job_for(way, server)).levels[0]
    assert level.speculation is None
    assert (level.measurement.acceptance_length, level.measurement.acceptance_per_position) == (1.0, ())
    assert level.measurement.verify_steps_per_s > 0


def test_outputs_are_token_ids_that_do_not_depend_on_level_or_speculation(way: Way, speculating: StubServer) -> None:
    """Same seed, same prompts: a lossless server answers with the same tokens, and they are the lowest level's."""
    with_drafts = run_load(job_for(way, speculating))
    with stub_server(**way.options, vocabulary=VOCABULARY) as server:
        without = run_load(job_for(way, server))
        other_seed = run_load(job_for(way, server, workload=WORKLOAD.model_copy(update={"seed": 4})))
    assert with_drafts.outputs == without.outputs != other_seed.outputs
    assert with_drafts.output_digest == without.output_digest != other_seed.output_digest
    assert [len(row) for row in without.outputs] == [40] * 10


def test_there_is_a_record_of_each_request(way: Way, speculating: StubServer, tmp_path: Path) -> None:
    """Times, tokens and the end of every counted request, and of no warm-up."""
    path = tmp_path / "requests.jsonl"
    run_load(job_for(way, speculating, records_path=str(path)))
    records = read_records(path)
    assert [(record.concurrency, record.index) for record in records] == [(c, i) for c in (4, 1) for i in range(10)]
    for record in records:
        assert (record.error, record.finish_reason, record.output_tokens, record.prompt_tokens) == (
            None,
            "length",
            40,
            24,
        )
        assert record.ttft_ms is not None
        assert 0 < record.ttft_ms <= record.total_ms
        assert len(record.gaps_ms) == len(record.tokens_per_event) - 1
        assert sum(record.tokens_per_event) == 40
        assert (record.verify_passes is None) == (way.api == "openai")


FAULTS = {
    "error_500": "HTTP 500: .*EngineDeadError",
    "error_event": "the server ended the stream: .*Internal server error",
    "stall": r"no end within 1 s \(2\d tokens so far\)",
    "silent": r"no end within 1 s \(0 tokens so far\)",
    "garbage": "no event of this API",
    "early_close": "the connection closed within the answer",
    "die": "the connection closed within the answer|the connection failed",
    "short": "20 tokens came instead of 40",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_request_that_fails_makes_the_load_unusable(way: Way, fault: str, tmp_path: Path) -> None:
    """The result names level and request with the server's answer, keeps the levels before, and has no measurement."""
    path = tmp_path / "requests.jsonl"
    healthy = 10 + 4 + 1  # level 4 with its warm-up, warm-up of level 1
    with stub_server(**way.options, fault=fault, fault_at=healthy + 3) as server:
        patience = 1.0 if fault in ("stall", "silent") else 60.0
        result = run_load(job_for(way, server, request_timeout_s=patience, records_path=str(path)))
        if fault == "die":
            assert server.process.wait(timeout=30) == -signal.SIGKILL
        assert (server.process.poll() is None) == (fault != "die")
    assert result.problem is not None
    assert result.problem.startswith("level 1, request ")
    assert [level.concurrency for level in result.levels] == [4]
    failed = [record for record in read_records(path) if record.error is not None]
    assert failed
    assert all(record.concurrency == 1 for record in failed)
    assert re.search(FAULTS[fault], result.problem)
    with pytest.raises(UnusableLoadError):
        measurement_of(result)


def test_a_dataset_is_sent_as_it_stands(way: Way, speculating: StubServer, tmp_path: Path) -> None:
    """Text or ids, and lengths of their own, which the server's counts show."""
    rows = [{"input_ids": [7] * n, "output_tokens": n} for n in (5, 6, 7)] + [
        {"prompt": "abcdefgh", "output_tokens": 9}
    ]
    dataset, path = tmp_path / "prompts.jsonl", tmp_path / "requests.jsonl"
    dataset.write_text("".join(json.dumps(row) + "\n" for row in rows))
    workload = Workload(concurrency=(2,), requests=4)
    job = job_for(way, speculating, workload=workload, dataset=str(dataset), warmup_requests=0, records_path=str(path))
    result = run_load(job)
    assert result.problem is None
    sent = sorted((record.prompt_tokens, record.output_tokens) for record in read_records(path))
    assert sent == [(5, 5), (6, 6), (7, 7), (8, 9)]


def test_a_server_is_ready_once_it_has_served_a_completion(way: Way, speculating: StubServer) -> None:
    """The record of the completion comes back."""
    record = serve_one_completion(speculating.base_url, way.api, "stub", timeout_s=10)
    assert (record.output_tokens, record.error) == (4, None)


@pytest.mark.parametrize(("fault", "status"), [("error_500", 500), ("silent", None)])
def test_a_server_that_serves_nothing_is_not_ready(way: Way, fault: str, status: int | None) -> None:
    """Its answer, or that there was none in time."""
    with stub_server(**way.options, fault=fault) as server, pytest.raises(NotServedError) as caught:
        serve_one_completion(server.base_url, way.api, "stub", timeout_s=0.5)
    assert caught.value.status == status


def test_a_server_that_is_not_there_is_not_ready(way: Way, speculating: StubServer) -> None:
    """It raises at once, so that the caller may ask again."""
    speculating.process.kill()
    speculating.process.wait()
    with pytest.raises(NotServedError, match="refused"):
        serve_one_completion(speculating.base_url, way.api, "stub", timeout_s=10)
