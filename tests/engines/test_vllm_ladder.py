"""The cheap rungs of a real vLLM: what its arguments resolve to, and what a dummy launch shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import OutcomeKind
from agent.reasons import Reason
from runners import Phase, Rung, RunRecord
from runners.resolve_rung import close_resolvers
from runners.vllm_runner import VllmRunner
from search_spaces import Scalar
from tests.engines.conftest import InstalledEngine
from tests.engines.launches import engine_request, left_behind, shared_memory_names


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """The warm process ends with each test."""
    yield
    close_resolvers()


def at(rung: Rung, vllm: InstalledEngine, folder: Path, **options: Scalar) -> RunRecord:
    """Run a trial of the tiny model at a rung and check that nothing of it is left."""
    said = {name.replace("_", "-"): value for name, value in options.items()}
    request = engine_request(vllm.python, vllm.models / "target", folder)
    request = request.model_copy(update={"rung": rung, "options": said})
    before = shared_memory_names()
    record = VllmRunner().run(request)
    assert left_behind(request, record, before) == []
    return record


def test_resolving_tells_what_a_launch_would_in_seconds(vllm: InstalledEngine, tmp_path: Path) -> None:
    good = at(Rung.RESOLVE, vllm, tmp_path / "good", max_num_seqs=8)
    assert classify(good).kind is OutcomeKind.MEASURED
    assert good.shown is not None
    assert good.shown.options == {"max-num-seqs": 8}
    odd = at(Rung.RESOLVE, vllm, tmp_path / "odd", tensor_parallel_size=3)
    failure = classify(odd, env_names={"--tensor-parallel-size": "tensor_parallel_size"}).failure
    assert failure is not None
    assert (failure.reason, failure.phase) == (Reason.CONFIG_INVALID, Phase.RESOLVE)
    absent = classify(at(Rung.RESOLVE, vllm, tmp_path / "absent", **{"speculative-config.method": "suffix"})).failure
    assert absent is not None
    assert absent.reason in (Reason.MISSING_DEPENDENCY, Reason.CONFIG_INVALID)


@pytest.mark.timeout(600)
def test_a_dummy_launch_serves_one_completion_and_no_load(vllm: InstalledEngine, tmp_path: Path) -> None:
    record = at(Rung.DUMMY, vllm, tmp_path, max_num_seqs=8)
    assert classify(record).kind is OutcomeKind.MEASURED
    assert (record.passed, record.measurement) == (True, None)
    assert {Phase.LOAD_WEIGHTS, Phase.WARMUP, Phase.READY} <= record.phase_s.keys()
    assert record.phase is Phase.READY
    assert not (tmp_path / "requests.jsonl").exists()
    words = list(record.argv)
    assert words[words.index("--load-format") + 1] == "dummy"
    assert '"num_hidden_layers": 2' in words[words.index("--hf-overrides") + 1]


@pytest.mark.timeout(600)
def test_what_resolves_and_dies_in_the_engine_dies_as_a_dummy(vllm: InstalledEngine, tmp_path: Path) -> None:
    """The arguments are fine; that a package of theirs is missing only the engine's worker finds out."""
    options: dict[str, Scalar] = {"worker_extension_cls": "no_such_package.Extension"}
    assert classify(at(Rung.RESOLVE, vllm, tmp_path / "resolve", **options)).kind is OutcomeKind.MEASURED
    record = at(Rung.DUMMY, vllm, tmp_path / "dummy", **options)
    failure = classify(record).failure
    assert failure is not None
    assert (failure.reason, record.passed) == (Reason.MISSING_DEPENDENCY, False)
    assert Phase.READY not in record.phase_s
    assert failure.decisive is not None and "No module named 'no_such_package'" in failure.decisive.text
