"""The engine's environment: the user's, without Ray's marks and telemetry, with ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners import Command
from runners.environment import MAX_TEMP_ROOT_LENGTH, added_environment, engine_environment, make_temp_dir
from tests.support.launches import make_request

TEMP_DIR = Path("agent-x")
COMMAND = Command(argv=("engine",), env={"NCCL_ALGO": "allreduce:tree"})


def build(tmp_path: Path, **user: str) -> dict[str, str]:
    return engine_environment(make_request(tmp_path, environment=user), COMMAND, TEMP_DIR)


def test_the_worker_s_environment_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("LEAKED", "yes")
    environment = build(tmp_path, RAY_ADDRESS="auto", HOME="/home/user")
    assert not {"OMP_NUM_THREADS", "LEAKED", "RAY_ADDRESS"} & environment.keys()
    assert environment["HOME"] == "/home/user"
    assert environment["NCCL_ALGO"] == "allreduce:tree"


def test_the_user_s_own_choice_wins_over_our_defaults(tmp_path: Path) -> None:
    assert build(tmp_path)["VLLM_NO_USAGE_STATS"] == "1"
    assert build(tmp_path, VLLM_NO_USAGE_STATS="0")["VLLM_NO_USAGE_STATS"] == "0"
    assert build(tmp_path, OMP_NUM_THREADS="7")["OMP_NUM_THREADS"] == "7"


def test_hubs_are_offline_unless_the_user_decided(tmp_path: Path) -> None:
    assert build(tmp_path)["TRANSFORMERS_OFFLINE"] == "1"
    online = build(tmp_path, HF_HUB_OFFLINE="0")
    assert online["HF_HUB_OFFLINE"] == "0"
    assert "TRANSFORMERS_OFFLINE" not in online


def test_everything_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_SESSION", "session")
    request = make_request(tmp_path, environment={"AGENT_COOKIE": "of an outer trial", "KEPT": "1"})
    environment = engine_environment(request, COMMAND, TEMP_DIR)
    marks = {"AGENT_COOKIE": request.cookie, "AGENT_SESSION": "session", "TMPDIR": "agent-x", "SPT_NOENV": "1"}
    assert marks.items() <= environment.items()
    added = added_environment(request, environment)
    assert marks.items() <= added.items()
    assert "KEPT" not in added


def test_the_temporary_folder_is_short(tmp_path: Path) -> None:
    long = tmp_path / ("long" * MAX_TEMP_ROOT_LENGTH)
    long.mkdir()
    for wanted in (str(long), "/no/such/folder", ""):
        folder = make_temp_dir({"TMPDIR": wanted})
        assert len(str(folder)) <= MAX_TEMP_ROOT_LENGTH
        folder.rmdir()
