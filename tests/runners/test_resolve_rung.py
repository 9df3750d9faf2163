"""The resolve rung: an engine's own word on its arguments, from forked children of one warm process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.classify import classify
from agent.reasons import Reason
from runners import EngineSettings, Phase, Rung, Runner, RunRecord
from runners.cookies import SESSION_VARIABLE, find_processes
from runners.engine_dialects import warm_resolver
from runners.engine_dialects.warm_resolver import WarmResolver
from runners.registry import make_runner
from runners.resolve_rung import close_resolvers
from search_spaces import Scalar
from tests.support.installed_engine import install_engine, make_model
from tests.support.launches import make_request

VERSIONS = {"vllm": "0.32.0", "sglang": "0.5.23"}


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A session of its own, of which nothing is left."""
    mark = f"resolve-{os.getpid()}-{tmp_path.name}"
    monkeypatch.setenv(SESSION_VARIABLE, mark)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield mark
    close_resolvers()
    assert find_processes(mark, variable=SESSION_VARIABLE) == []


def resolved(
    engine: str,
    folder: Path,
    options: Mapping[str, Scalar],
    variables: Mapping[str, str] | None = None,
    fixed: Mapping[str, Scalar] | None = None,
) -> RunRecord:
    """Resolve one launch of an engine that only seems to be installed."""
    python = folder / "engine" / "bin" / "python"
    if not python.exists():
        install_engine(folder / "engine", engine, VERSIONS[engine])
        make_model(folder / "model", num_hidden_layers=2)
    settings = EngineSettings(
        engine=engine,
        num_ranks=1,
        device="cpu",
        python=str(python),
        model=str(folder / "model"),
        options=dict(fixed or {}),
    )
    request = make_request(
        folder / "trial",
        rung=Rung.RESOLVE,
        settings=settings,
        options=dict(options),
        variables=dict(variables or {}),
        environment={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )
    runner: Runner = make_runner(engine)
    return runner.run(request)


def test_arguments_that_resolve_show_their_values_and_what_was_replaced(tmp_path: Path) -> None:
    record = resolved("vllm", tmp_path, {"max-num-seqs": "512"})
    assert (record.passed, record.phase) == (True, Phase.RESOLVE)
    assert record.shown is not None
    assert record.shown.options == {"max-num-seqs": 256}


def test_a_refusal_has_the_engine_s_own_message_and_is_classified_by_it(tmp_path: Path) -> None:
    record = resolved("vllm", tmp_path, {"tensor-parallel-size": "3"})
    assert (record.passed, record.exit.code) == (False, 1)
    failure = classify(record, env_names={"--tensor-parallel-size": "tensor_parallel_size"}).failure
    assert failure is not None
    assert failure.reason is Reason.CONFIG_INVALID
    assert failure.decisive is not None and "divisible by tensor parallel size" in failure.decisive.text


def test_equal_launches_have_one_fingerprint_whatever_was_resolved_before(tmp_path: Path) -> None:
    """A child sees no state of another one, ports do not count, and variables do."""
    first, other, same, elsewhere = (
        resolved("vllm", tmp_path, {"max-num-seqs": text}, variables)
        for text, variables in (("512", {}), ("64", {}), ("256", {}), ("256", {"NCCL_ALGO": "Ring"}))
    )
    prints = [record.shown.fingerprint for record in (first, other, same, elsewhere) if record.shown]
    assert prints[0] == prints[2]
    assert len(set(prints)) == 3


def test_an_engine_that_does_not_answer_says_nothing_and_answers_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved("vllm", tmp_path, {})  # the engine is imported
    monkeypatch.setattr(warm_resolver, "ORDER_TIMEOUT_S", 0.5)
    record = resolved("vllm", tmp_path, {}, {"ARGUMENTS_HANG": "1"})
    assert (record.passed, record.exit.cause) == (False, "lost")
    assert "no answer" in Path(record.log_path or "").read_text(encoding="utf-8")
    monkeypatch.undo()
    assert resolved("vllm", tmp_path, {}).passed


def test_an_engine_that_cannot_be_imported_blames_no_argument(tmp_path: Path) -> None:
    resolved("vllm", tmp_path, {})
    close_resolvers()
    (tmp_path / "engine" / "site" / "vllm" / "usage" / "usage_lib.py").write_text("import no_such_package\n")
    record = resolved("vllm", tmp_path, {})
    assert record.exit.cause == "lost"
    assert "No module named 'no_such_package'" in record.excerpt[-1].text


def test_what_a_version_cannot_be_told_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    record = resolved("vllm", tmp_path, {"no-such-option": "1"})
    assert record.exit.code == 2
    assert "unrecognized arguments: --no-such-option" in record.excerpt[-1].text


def test_sglang_shows_what_it_forces(tmp_path: Path) -> None:
    options = {"speculative-algorithm": "EAGLE3", "speculative-num-steps": "4", "speculative-num-draft-tokens": "8"}
    record = resolved("sglang", tmp_path, options)
    assert record.passed, record.excerpt
    assert record.shown is not None
    assert record.shown.options["speculative-num-draft-tokens"] == 5


def test_what_the_study_says_to_us_is_not_said_to_the_engine(tmp_path: Path) -> None:
    record = resolved("sglang", tmp_path, {"speculative-algorithm": "EAGLE3"}, fixed={"simulate_acceptance": 2.5})
    assert record.passed, record.excerpt


def test_an_argument_that_the_parser_does_not_know_ends_a_child_with_2(tmp_path: Path) -> None:
    install_engine(tmp_path / "engine", "vllm", VERSIONS["vllm"])
    resolver = WarmResolver("vllm", str(tmp_path / "engine" / "bin" / "python"), {"PATH": os.environ["PATH"]})
    try:
        answer = resolver.resolve("0", ["--nope"], {}, [], tmp_path / "log")
    finally:
        resolver.close()
    assert (answer.end, answer.code) == ("refused", 2)
    assert "unrecognized arguments: --nope" in (tmp_path / "log").read_text(encoding="utf-8")


def test_the_script_needs_nothing_of_ours() -> None:
    """It runs in the user's Python, where nothing of this project can be imported."""
    text = warm_resolver.SCRIPT.read_text(encoding="utf-8")
    assert "import runners" not in text and "from runners" not in text and "search_spaces" not in text
    assert json.dumps(warm_resolver.MARK) in text
