"""The client as a process: what it is given, what it leaves, and what its log says to the classifier."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.classify import classify
from agent.reasons import Reason
from runners import Exit, Phase, RunRecord, Workload
from runners.load_client import BENCHMARK_ERROR, LoadJob, load_command, measurement_of, read_result, run_load
from tests.support.stub_servers import stub_server

WORKLOAD = Workload(concurrency=(1, 2), prompt_tokens=8, output_tokens=12, requests=3)


def job_for(base_url: str, **changes: object) -> LoadJob:
    fields = {"base_url": base_url, "api": "openai", "model": "stub", "vocabulary_size": 100, "workload": WORKLOAD}
    return LoadJob.model_validate(fields | changes)


def run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_it_leaves_the_result_that_a_call_returns(tmp_path: Path) -> None:
    """Figures differ from run to run; what was served does not."""
    with stub_server(draft_tokens=2) as server:
        ended = run(load_command(job_for(server.base_url), tmp_path))
        called = run_load(job_for(server.base_url))
    assert (ended.returncode, ended.stderr) == (0, "")
    result = read_result(tmp_path)
    assert result is not None
    assert (result.outputs, result.output_digest) == (called.outputs, called.output_digest)
    assert [level.speculation for level in result.levels] == [level.speculation for level in called.levels]
    assert [level.concurrency for level in measurement_of(result).levels] == [1, 2]
    assert "[load_client] level 2: 3 requests, 36 tokens" in ended.stdout


def test_a_failed_request_is_a_line_that_the_classifier_calls_ours(tmp_path: Path) -> None:
    """It is launched again and blames no parameter."""
    with stub_server(fault="stall") as server:
        ended = run(load_command(job_for(server.base_url, request_timeout_s=0.3), tmp_path))
    assert ended.returncode == 1
    assert f"{BENCHMARK_ERROR} warm-up of level 2, request 0: no end within 0.3 s" in ended.stdout
    assert judged(tmp_path, ended.stdout) == ("B005", Reason.BENCHMARK_ERROR)
    result = read_result(tmp_path)
    assert result is not None
    assert result.problem is not None


def test_a_failure_in_the_engines_own_log_explains_a_failed_request(tmp_path: Path) -> None:
    """The client only noticed it."""
    with stub_server(fault="early_close") as server:
        ended = run(load_command(job_for(server.base_url), tmp_path))
    engine = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert judged(tmp_path, ended.stdout)[1] is Reason.BENCHMARK_ERROR
    assert judged(tmp_path, engine + ended.stdout)[1] is Reason.GPU_OOM
    assert judged(tmp_path, ended.stdout + engine)[1] is Reason.GPU_OOM
    assert judged(tmp_path, "MyEngineError: nobody knows this one\n" + ended.stdout)[1] is not Reason.BENCHMARK_ERROR


def judged(folder: Path, log: str) -> tuple[str, Reason]:
    path = folder / "engine.log"
    path.write_text(log)
    ending = Exit(signal=15, requested=True, cause="served")
    failure = classify(RunRecord(exit=ending, phase=Phase.SERVE, wall_s=1.0, log_path=str(path))).failure
    assert failure is not None
    return failure.rule, failure.reason


def test_an_earlier_result_is_not_taken_for_this_one(tmp_path: Path) -> None:
    """A client that was killed leaves none."""
    with stub_server() as server:
        run(load_command(job_for(server.base_url), tmp_path))
    assert read_result(tmp_path) is not None
    load_command(job_for("http://127.0.0.1:1"), tmp_path)
    assert read_result(tmp_path) is None


@pytest.mark.parametrize("case", ["no arguments", "no file", "no job", "no dataset"])
def test_a_job_that_cannot_be_run_is_a_line_and_not_a_traceback(case: str, tmp_path: Path) -> None:
    """Exit code 2, as for any wrong use."""
    command = load_command(job_for("http://127.0.0.1:1", dataset=str(tmp_path / "none.jsonl")), tmp_path)
    if case == "no arguments":
        command = command[:3]
    elif case == "no file":
        Path(command[3]).unlink()
    elif case == "no job":
        Path(command[3]).write_text('{"api": "soap"}')
    ended = run(command)
    assert (ended.returncode, ended.stderr) == (2, "")
    assert ended.stdout.startswith(BENCHMARK_ERROR)
    assert len(ended.stdout.splitlines()) == 1


def test_loading_the_package_does_not_load_the_http_library() -> None:
    """A command line that serves nothing need not wait for it."""
    code = "import sys, runners.load_client; print('aiohttp' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
