"""A server's probes through its runner: in the engine's own Python, one record a request, whatever came of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import OutcomeKind
from runners import Deadlines, EngineSettings, Rung, TrialRequest, Workload
from runners.contract import Command
from runners.cookies import find_processes
from runners.server_probes import ProbeOrder, probe_server, run_probe_batch
from runners.vllm_runner import VllmRunner
from search_spaces import Assignment, load_space
from tests.support.installed_engine import install_engine, make_model

SPACE = load_space("vllm")
FACTS = {"device": "cpu"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that seems to hold vLLM, and holds a real torch."""
    return install_engine(tmp_path_factory.mktemp("vllm"), "vllm", "0.32.0")


def request_of(
    folder: Path, python: str, trial: int, *, deadlines: Deadlines | None = None, **values: object
) -> TrialRequest:
    """Return the request of a probe of a tiny model on two CPU ranks."""
    point: Assignment = SPACE.normalise({**SPACE.default_on(FACTS), **values}, FACTS)  # type: ignore[dict-item]
    model = folder / "model"
    if not model.exists():
        make_model(model, hidden_size=64, num_hidden_layers=3)
    return TrialRequest(
        study="s",
        trial=trial,
        rung=Rung.PROBE,
        settings=EngineSettings(engine="vllm", num_ranks=2, device="cpu", model=str(model), python=python),
        assignment=point,
        options=SPACE.options(point),
        variables=SPACE.environment(point),
        workload=Workload(concurrency=(1, 4)),
        deadlines=deadlines or Deadlines(),
        cookie=f"probe-{os.getpid()}-{folder.name}",
        environment={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        artifact_dir=str(folder / str(trial)),
    )


def test_a_server_s_collectives_are_probed_with_the_engine_s_torch(python: str, tmp_path: Path) -> None:
    requests = [
        request_of(tmp_path, python, 0),
        request_of(tmp_path, python, 1, speculative_method="ngram", num_speculative_tokens=3),
    ]
    plain, drafting = VllmRunner().run_probes(requests)
    assert plain.probe is not None and drafting.probe is not None
    assert [call.bytes for call in plain.probe.calls] == [64 * 4, 4 * 64 * 4]
    assert [call.bytes for call in drafting.probe.calls] == [4 * 64 * 4, 16 * 64 * 4]
    assert plain.probe.calls_per_pass == 6
    assert plain.probe.backend == "gloo" and "torch" in plain.probe.software
    assert plain.argv[0] == python and not plain.effects
    assert classify(plain).kind is OutcomeKind.MEASURED
    assert plain.log_path is not None and "allreduce=gloo" in Path(plain.log_path).read_text()
    assert plain.leftovers.is_clean and find_processes(requests[0].cookie) == []


def test_what_the_time_of_a_batch_does_not_reach_is_lost_and_blames_nothing(python: str, tmp_path: Path) -> None:
    requests = [request_of(tmp_path, python, trial, deadlines=Deadlines(batch_s=0.01)) for trial in range(2)]
    records = VllmRunner().run_probes(requests)
    assert {record.exit.cause for record in records} == {"lost"}
    assert {classify(record).kind for record in records} == {OutcomeKind.INTERRUPTED}
    assert find_processes(requests[0].cookie) == []


@pytest.mark.parametrize(("phase", "is_told"), [("compile", True), ("init_distributed", False)])
def test_what_still_compiles_when_the_time_is_over_is_said(
    python: str, tmp_path: Path, phase: str, is_told: bool
) -> None:
    """Whoever asks again finds what was compiled; a probe that did not come so far was only not reached."""
    order = ProbeOrder(request=request_of(tmp_path, python, 0, deadlines=Deadlines(batch_s=0.01)), compiles=True)
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "probe.log").write_text(f"[torch_engine 1.000] rank=0 phase={phase}\n")
    server = Command(argv=("sh", "-c", "exec sleep 60", "sh"))
    (record,) = run_probe_batch([order], server)
    assert (record.not_probed is not None and "still being compiled" in record.not_probed) is is_told
    assert (record.exit.cause == "lost") is not is_told


def test_an_engine_without_torch_is_probed_with_ours(tmp_path: Path) -> None:
    settings = EngineSettings(engine="vllm", num_ranks=2, device="cpu", python=str(tmp_path / "nowhere" / "python"))
    assert probe_server(settings, dict(os.environ)).argv[0] != settings.python
