"""A real vLLM on the CPU: its collectives are probed under its own Python, and its own classes are called."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from runners import Rung, RunRecord
from runners.torch_engine import __file__ as engine_file
from runners.vllm_runner import VllmRunner
from tests.engines.conftest import InstalledEngine
from tests.engines.launches import engine_request
from tests.support.command_line import agent

STANDALONE = Path(engine_file).with_name("standalone.py")


def test_a_probe_runs_in_the_engine_s_own_environment(vllm: InstalledEngine, tmp_path: Path) -> None:
    request = engine_request(vllm.python, vllm.models / "target", tmp_path, tp=2).model_copy(
        update={"rung": Rung.PROBE}
    )
    (record,) = VllmRunner().run_probes([request])
    assert record.probe is not None, record
    assert vllm.python in record.probe.software
    hidden = json.loads((vllm.models / "target" / "config.json").read_text())["hidden_size"]
    sums = [call.bytes for call in record.probe.calls if call.op == "all_reduce"]
    assert sums == [hidden * 4, 4 * hidden * 4]
    assert record.leftovers.is_clean


def test_the_engine_s_communicators_are_what_they_are_known_as(vllm: InstalledEngine, tmp_path: Path) -> None:
    """Without a GPU each of them switches itself off: that is an answer, and not a class that nobody knows."""
    plan = {"device": "cpu", "tp": 2, "has_graphs": False, "is_graph_served": False, "width": 64}
    levels = [[{"op": "all_reduce", "numel": 64, "count": 1}]]
    names = ("vllm.custom", "vllm.torch_symm_mem", "vllm.flashinfer")
    requests = [
        {"id": name, "log": str(tmp_path / f"{name}.log"), "plan": {**plan, "levels": levels, "chain": [name, "gloo"]}}
        for name in names
    ]
    (tmp_path / "requests.jsonl").write_text(
        "".join(json.dumps({**each, "timeout_s": 120}) + "\n" for each in requests)
    )
    files = ("--requests", str(tmp_path / "requests.jsonl"), "--results", str(tmp_path / "results.jsonl"))
    subprocess.run([vllm.python, str(STANDALONE), *files], check=True, env=os.environ, cwd=tmp_path, timeout=240)
    answers = list(map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines()))
    assert [answer["id"] for answer in answers] == list(names)
    for answer in answers:
        assert answer["not_probed"] is None and answer["collective"] == "gloo", answer
        assert "switches itself off" in answer["replaced"][0]


def test_agent_probe_shows_what_a_server_s_settings_select(vllm: InstalledEngine, tmp_path: Path) -> None:
    model = str(vllm.models / "target")
    words = ("--engine", "vllm", "--engine-python", vllm.python, "--model", model, "--device", "cpu", "--tp", "2")
    done = agent("probe", *words, "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert [row["state"] for row in table["rows"]] == ["works"]
    assert vllm.python in table["software"][0]


def test_a_record_is_told_by_its_log(vllm: InstalledEngine, tmp_path: Path) -> None:
    """A broken interface fails for real, and the log says so."""
    request = engine_request(vllm.python, vllm.models / "target", tmp_path, tp=2)
    broken = request.model_copy(update={"rung": Rung.PROBE, "variables": {"GLOO_SOCKET_IFNAME": "no-such-interface"}})
    (record,) = VllmRunner().run_probes([broken])
    assert isinstance(record, RunRecord) and record.probe is None and record.exit.code == 1
    assert any("no-such-interface" in line.text for line in record.excerpt)
