"""What every way of measuring promises of limits, of arrivals and of lengths that differ."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runners import EngineSettings, Rung, Runner, TrialRequest, Workload
from runners.goodput import Limit
from runners.load_client import LoadJob, LoadResult, RequestRecord, run_load
from runners.load_client.arrivals import arrival_times
from runners.replay_runner import ReplayRunner
from runners.torch_runner import TorchRunner
from search_spaces import load_space
from tests.support.stub_servers import stub_server

SPACE = load_space("torch")
WORKS = SPACE.normalise(SPACE.default_on({"device": "cpu"}), {"device": "cpu"})
NODE_MODEL = str(Path(__file__).parents[1] / "support" / "torch_node.yaml")
NEVER, ALWAYS = Limit(figure="ttft_ms", at_most=1e-6), Limit(figure="e2e_ms", percentile=50, at_most=1e9)


@pytest.fixture(params=[TorchRunner, ReplayRunner], ids=lambda runner: runner.__name__)
def runner(request: pytest.FixtureRequest) -> Runner:
    """Every runner that measures its requests itself."""
    made: Runner = request.param()
    return made


def test_a_level_says_what_of_it_keeps_the_limits(runner: Runner, tmp_path: Path) -> None:
    """Nothing where every request breaks one, and the share within each limit either way."""
    record = runner.run(
        TrialRequest(
            study="contract",
            trial=0,
            rung=Rung.FULL,
            settings=EngineSettings(
                engine="any", num_ranks=2, device="cpu", options={"preset": "tiny"}, node_model=NODE_MODEL
            ),
            assignment=WORKS,
            options=SPACE.options(WORKS),
            variables=SPACE.environment(WORKS),
            workload=Workload(concurrency=(2,), output_tokens=6, slo=(NEVER, ALWAYS)),
            cookie=f"contract-{os.getpid()}-{tmp_path.name}",
            environment=dict(os.environ),
            artifact_dir=str(tmp_path),
        )
    )
    assert record.measurement is not None
    (level,) = record.measurement.levels
    assert level.goodput is not None and level.e2e_ms is not None and level.requests_per_s is not None
    assert dict(level.goodput.within) == {"ttft_ms": 0.0, "e2e_ms.p50": 1.0}
    assert (level.goodput.requests_per_s, level.goodput.output_tok_per_s) == (0.0, 0.0)
    assert level.e2e_ms.p50 > level.ttft_ms.p50
    assert level.requests_per_s * 6 == pytest.approx(level.output_tok_per_s, rel=0.2)


def sent(workload: Workload, folder: Path, **more: object) -> tuple[LoadResult, list[RequestRecord]]:
    """Send a workload to a stub and return what came back."""
    path = folder / "requests.jsonl"
    with stub_server(metrics="vllm") as server:
        fields = {"base_url": server.base_url, "api": "openai", "model": "stub", "workload": workload}
        result = run_load(LoadJob.model_validate({**fields, "records_path": str(path), **more}))
    return result, [RequestRecord.model_validate_json(line) for line in path.read_text().splitlines()]


def test_requests_that_arrive_by_themselves_wait_for_nobody(tmp_path: Path) -> None:
    """Each is sent at its own time, and its latency counts from then, however late it is sent."""
    workload = Workload(concurrency=(1,), arrival_per_s=400.0, requests=20, output_tokens=40)
    result, records = sent(workload, tmp_path)
    job = LoadJob.model_validate({"base_url": "http://x", "api": "openai", "model": "m", "workload": workload})
    due = arrival_times(job, 1, 20)
    assert result.problem is None and due is not None
    assert [record.sent_ms for record in records] == pytest.approx([1000 * each for each in due], abs=1)
    assert all(record.ttft_ms is not None and record.ttft_ms >= 0.0 for record in records)


def test_a_built_in_workload_is_sent_with_lengths_of_its_own(tmp_path: Path) -> None:
    workload = Workload(concurrency=(4,), lengths="code", requests=12, slo=(NEVER, ALWAYS))
    result, records = sent(workload, tmp_path, longest_tokens=300)
    assert result.problem is None
    assert len({record.prompt_tokens for record in records}) > 3
    assert len({record.output_tokens for record in records}) > 3
    assert all((record.prompt_tokens or 0) + record.output_tokens <= 300 for record in records)
    goodput = result.levels[0].measurement.goodput
    assert goodput is not None and dict(goodput.within) == {"ttft_ms": 0.0, "e2e_ms.p50": 1.0}


def test_answers_have_the_lengths_that_their_lines_ask_for(tmp_path: Path) -> None:
    """And the study's length where a line asks for none."""
    path = tmp_path / "prompts.jsonl"
    rows = [{"prompt": "abc", "output_tokens": 5}, {"input_ids": [3, 4], "output_tokens": 9}, {"prompt": "defg"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    workload = Workload(concurrency=(1,), requests=3, output_tokens=7, dataset=str(path))
    _, records = sent(workload, tmp_path, dataset=str(path), warmup_requests=0)
    assert sorted((record.prompt_tokens, record.output_tokens) for record in records) == [(2, 9), (3, 5), (4, 7)]
