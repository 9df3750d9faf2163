"""The command line before a launch, against a vLLM that is really installed."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from agent.cli.main import main
from tests.engines.conftest import InstalledEngine
from tests.engines.environment import VERSION


def run(*words: str) -> str:
    """Run a command in this process and return what it printed."""
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_base_command_of_the_real_engine_is_planned(vllm: InstalledEngine, tmp_path: Path) -> None:
    """Its own program shows its Python; its own options tell a flag from an option with a value."""
    program = Path(vllm.python).with_name("vllm")
    command = f"{program} serve {vllm.models / 'target'} --enforce-eager --max-model-len 512 --max-num-seqs 8 -tp 1"
    said = run("search", "--dry-run", "--home", str(tmp_path / "home"), "--device", "cpu", "--base-cmd", command)
    lines = said.splitlines()
    assert f"vllm {VERSION}+cpu of {vllm.python}" in lines
    assert "fixed: --max-model-len 512" in lines
    assert "begins at: cuda_graph_max_bs=0 max_num_seqs=8" in lines
    assert not (tmp_path / "home").exists()


def test_the_doctor_knows_what_the_real_engine_can_use(vllm: InstalledEngine, tmp_path: Path) -> None:
    """Every value that the space has is one that this version can be told."""
    words = ("doctor", "--engine", "vllm", "--engine-python", vllm.python, "--device", "cpu", "--json")
    engine = json.loads(run(*words, "--home", str(tmp_path)))["engines"][0]
    assert (engine["usable"], engine["version"]) == (True, f"{VERSION}+cpu")
    states = {value["state"] for values in engine["parameters"].values() for value in values}
    assert "usable" in states
    assert "not in this version" not in states
