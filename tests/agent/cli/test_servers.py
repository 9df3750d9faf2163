"""Servers on the command line: the plan of a search, and the doctor's page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.agent.conftest import Installed

Invoke = Callable[..., Result]
TOKEN = "hf_abcdefghijklmnopqrst"  # noqa: S105 - nobody's


def test_the_plan_says_what_runs_what_is_fixed_and_what_is_left_out(
    invoke: Invoke, installed: Installed, tmp_path: Path
) -> None:
    """Before anything is written or launched, and without a secret."""
    result = invoke(
        *("search", "--dry-run", "--home", str(tmp_path / "home"), "--device", "cpu", "--exclude", "ep_size=16"),
        *("--base-cmd", f"HF_TOKEN={TOKEN} {installed.sglang} -m sglang.launch_server --model-path x/y --tp 2"),
        *("--draft", installed.draft, "--option", "api-key=sesame-open", "--option", "simulate_acceptance=2.5"),
        *("--env", "PROXY=http://me:pass-word@proxy"),
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert f"sglang 0.5.16 of {installed.sglang}" in lines
    assert f"model x/y, draft {installed.draft}" in lines
    fixed = "fixed: HF_TOKEN=*** PROXY=http://me:***@proxy --api-key *** --simulate_acceptance 2.5"
    assert fixed in lines
    assert any(line.startswith("acceptance is simulated, 2.5 tokens") for line in lines)
    assert "left out, since sglang 0.5.16 cannot be told:" in lines
    assert any(line.startswith("  allreduce=pcie_ipc: sglang 0.5.16 does not read") for line in lines)
    assert "ep_size (4)" in next(line for line in lines if line.startswith("searching: "))
    assert not [secret for secret in (TOKEN, "sesame-open", "pass-word") if secret in result.output]
    assert not (tmp_path / "home").exists()


def test_an_error_does_not_repeat_a_secret(invoke: Invoke, tmp_path: Path) -> None:
    """The value of a variable whose name is wrong."""
    result = invoke("search", "--home", str(tmp_path), "--engine", "vllm", "--env", f"HF-TOKEN={TOKEN}")
    assert result.exit_code == 2
    assert "HF-TOKEN" in result.stderr
    assert TOKEN not in result.output


def test_the_doctor_says_what_can_be_used_and_how_to_get_the_rest(
    invoke: Invoke, installed: Installed, tmp_path: Path
) -> None:
    """A page for a reader: usable values in a line, the others with their reason and cure."""
    result = invoke("doctor", "--engine", "vllm", "--engine-python", installed.vllm, "--home", str(tmp_path))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert f"vllm 0.32.0 of {installed.vllm}" in lines
    assert "  speculative_method: none, mtp, ngram" in lines
    assert "    suffix: package missing, there is no arctic_inference" in lines
    assert "      cure: pip install arctic-inference==0.1.1" in lines
    assert any(line.startswith("ray ") for line in lines)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_doctor_ends_with_4_where_the_engine_is_not_usable(
    invoke: Invoke, installed: Installed, tmp_path: Path, engine: str
) -> None:
    """For scripts that prepare a node."""
    other = installed.vllm if engine == "sglang" else installed.sglang
    words = ("doctor", "--engine", engine, "--engine-python", other, "--home", str(tmp_path))
    result = invoke(*words, "--json")
    assert result.exit_code == 4
    found = json.loads(result.stdout)
    assert (found["engines"][0]["usable"], found["engines"][0]["parameters"]) == (False, {})
    assert f"has no {engine}" in found["engines"][0]["problem"]


def test_the_doctors_json_holds_facts_node_and_every_value(
    invoke: Invoke, installed: Installed, tmp_path: Path
) -> None:
    """The keys are a promise to programs."""
    words = ("doctor", "--engine", "sglang", "--engine-python", installed.sglang, "--device", "cpu", "--json")
    found = json.loads(invoke(*words, "--home", str(tmp_path)).stdout)
    assert set(found) == {"facts", "node", "engines", "interference", "cluster"}
    assert found["cluster"] is None
    assert set(found["node"][0]) == {"name", "is_there", "found", "cure", "is_needed"}
    engine = found["engines"][0]
    assert set(engine) == {"engine", "usable", "version", "python", "problem", "parameters"}
    assert engine["parameters"]["allreduce"][0] == {"value": "default", "state": "usable", "why": "", "cure": ""}
    assert found["facts"]["engine_version"] == "sglang 0.5.16"


def test_a_wrong_option_of_the_doctor_is_an_error_of_usage(
    invoke: Invoke, installed: Installed, tmp_path: Path
) -> None:
    """A model that is not there is no finding about the node."""
    words = ("doctor", "--engine", "vllm", "--engine-python", installed.vllm, "--model", "/no/such")
    result = invoke(*words, "--home", str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no /no/such" in result.stderr


def test_all_engines_are_looked_at_unless_one_is_named(invoke: Invoke, installed: Installed, tmp_path: Path) -> None:
    """Options of servers are not for torch, which is there as well."""
    words = ("doctor", "--engine-python", installed.vllm, "--json", "--home", str(tmp_path))
    result = invoke(*words)
    assert result.exit_code == 0
    usable = {each["engine"]: each["usable"] for each in json.loads(result.stdout)["engines"]}
    assert usable == {"torch": True, "sglang": False, "vllm": True}
