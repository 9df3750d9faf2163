"""The runners of SGLang and vLLM: the right command, the right endpoint, phases and proofs, over a fake engine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import OutcomeKind
from runners import EngineSettings, Phase, Workload, server_runner
from runners.engine_dialects import EngineOptions
from runners.registry import make_runner
from search_spaces import load_space
from tests.support.fake_engine import fake_python
from tests.support.launches import make_request
from tests.support.recorded_options import recorded

LOGS = Path(__file__).with_name("recorded_logs")
VERSIONS = {"sglang": "0.5.16", "vllm": "0.32.0"}
HEALTHY = {"sglang": "sglang-nograph", "vllm": "vllm-sigterm_leader_clean"}
PROVEN = {
    "sglang": (
        {"mem_fraction_static": 0.6, "cuda_graph_max_bs": 8},
        {"mem_fraction_static": 0.5, "cuda_graph_max_bs": 0},
    ),
    "vllm": ({"gpu_memory_utilization": 0.7, "max_num_seqs": 8}, {"gpu_memory_utilization": 0.3}),
}
"""What is asked for, and what the recorded log proves to have run."""
every_engine = pytest.mark.parametrize("engine", ["sglang", "vllm"])


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the recorded versions are installed."""

    def accepted(engine: str, python: str | None) -> EngineOptions:
        return recorded(engine, VERSIONS[engine])

    monkeypatch.setattr(server_runner, "accepted_options", accepted)


@every_engine
def test_a_launch_is_commanded_followed_loaded_and_proven(engine: str, tmp_path: Path) -> None:
    space, (asked, proven) = load_space(engine), PROVEN[engine]
    assignment = {**space.default_on({"device": "cuda"}), **asked}
    settings = EngineSettings(
        engine=engine, num_ranks=1, device="cpu", python=fake_python(tmp_path), model=str(tmp_path / "model")
    )
    environment = {
        "PATH": os.environ["PATH"],
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "FAKE_LOG": str(LOGS / f"{HEALTHY[engine]}.log"),
        "FAKE_METRICS": engine,
    }
    request = make_request(
        tmp_path,
        environment=environment,
        settings=settings,
        assignment=assignment,
        options=space.options(assignment),
        variables=space.environment(assignment),
        workload=Workload(concurrency=(1, 2), prompt_tokens=8, output_tokens=8, requests=4),
    )
    record = make_runner(engine).run(request)
    assert classify(record).kind is OutcomeKind.MEASURED, record.excerpt
    assert {Phase.LOAD_WEIGHTS, Phase.ALLOC_KV, Phase.WARMUP, Phase.READY, Phase.SERVE} <= record.phase_s.keys()
    assert record.measurement is not None
    assert [level.concurrency for level in record.measurement.levels] == [1, 2]
    assert proven.items() <= {proof.parameter: proof.effective for proof in record.effects}.items()
    assert record.argv[record.argv.index("--host") + 1] == "127.0.0.1"
    assert record.env["VLLM_CACHE_ROOT"].startswith(str(tmp_path / "cache"))
    assert f"{engine}-{VERSIONS[engine]}" in record.env["TRITON_CACHE_DIR"]
    assert record.leftovers.is_clean


def test_sglang_is_given_a_port_for_nccl_and_no_patience_at_its_end(tmp_path: Path) -> None:
    settings = EngineSettings(engine="sglang", num_ranks=2, device="cuda", model="/m")
    runner = make_runner("sglang")
    command = runner.command(make_request(tmp_path, settings=settings))
    assert int(command.argv[command.argv.index("--nccl-port") + 1]) >= 20_000
    assert command.argv[command.argv.index("--port") + 1] == "30000"


@every_engine
def test_what_is_rewritten_silently_is_known_before_a_launch(engine: str) -> None:
    space = load_space(engine)
    facts = {"device": "cuda", "num_ranks": 1}
    asked = {**space.default_on(facts), "allreduce": "custom"}
    settings = EngineSettings(engine=engine, num_ranks=1, device="cuda", model="/m")
    resolution = make_runner(engine).resolve(asked, settings, facts)
    assert resolution.assignment["allreduce"] == "default"
    assert [each.parameter for each in resolution.rewrites] == ["allreduce"]
