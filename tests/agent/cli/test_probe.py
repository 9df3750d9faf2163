"""`agent probe` on this machine: a table of what it offers, stored as a study, bounded, and clean when interrupted."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from runners.cookies import find_processes
from tests.support.command_line import agent, running_cookies, start_agent
from tests.support.waiting import wait_until

CPU = ("probe", "--device", "cpu", "--tp", "2")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the probes of this machine are stored."""
    return tmp_path_factory.mktemp("probe") / "home"


@pytest.fixture(scope="module")
def table(home: Path) -> dict[str, Any]:
    """The table of this machine's CPUs."""
    done = agent(*CPU, "--sizes", "4k,64K", "--json", home=home)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def rows(table: dict[str, Any], state: str) -> dict[str, dict[str, Any]]:
    """Return the rows in a state, by collective (with experts apart)."""
    found = [row for row in table["rows"] if row["state"] == state]
    return {f"{row['values']['allreduce']}{'+ep' * ('expert_parallel' in row['values'])}": row for row in found}


def test_every_collective_is_timed_or_says_why_not(table: dict[str, Any]) -> None:
    works, failed = rows(table, "works"), rows(table, "failed")
    assert set(works) == {"gloo", "gloo+ep", "reduce_scatter_all_gather", "all_gather_local_sum"}
    assert set(failed) == {"nccl", "symm_mem_one_shot", "symm_mem_two_shot"}
    assert {row["reason"] for row in failed.values()} == {"missing_dependency"}
    assert [call["bytes"] for call in works["gloo"]["calls"]] == [4096, 65536]
    assert {call["op"] for call in works["gloo+ep"]["calls"]} == {"all_reduce", "all_to_all", "all_gather"}
    assert all(call["us_p10"] <= call["us_p50"] <= call["us_p90"] for call in works["gloo"]["calls"])


def test_the_best_comes_first(table: dict[str, Any]) -> None:
    times = [row["pass_us"] for row in table["rows"] if row["state"] == "works"]
    assert times == sorted(times)
    assert [row["state"] for row in table["rows"][: len(times)]] == ["works"] * len(times)


def test_its_dead_ends_are_on_a_map(table: dict[str, Any], home: Path) -> None:
    found = json.loads(agent("deadends", table["study"], "--json", home=home).stdout)
    values = {each["conditions"][0]["value"] for each in found if each["state"] == "confirmed"}
    assert values == {"nccl", "symm_mem_one_shot", "symm_mem_two_shot"}
    assert agent("resume", table["study"], home=home).returncode == 0  # there is nothing left to do


def test_what_the_time_does_not_reach_is_listed(home: Path) -> None:
    done = agent(*CPU, "--time-budget", "0.1s", home=home)
    assert done.returncode == 0, done.stderr
    assert "not reached:" in done.stdout and "reduce_scatter_all_gather" in done.stdout


def test_an_interruption_cleans_up_and_shows_what_there_is(tmp_path: Path) -> None:
    probing = start_agent(*CPU, home=tmp_path)
    wait_until(lambda: bool(running_cookies(tmp_path)), 60)
    cookies = running_cookies(tmp_path)
    probing.process.send_signal(signal.SIGINT)
    assert probing.ended.returncode == 130, probing.ended.stderr
    assert "not reached:" in probing.ended.stdout
    assert not any(find_processes(cookie) for cookie in cookies)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sizes", "4q"), "'4q' is not a size"),
        (("--sizes", "0"), "'0' is not a size"),
        (("--time-budget", "soon"), "not a duration"),
        (("--model", "/models/big"), "--model: this is for servers"),
        (("--engine", "vlm"), "no engine 'vlm'"),
    ],
)
def test_wrong_input_is_one_message(
    invoke: Callable[..., Result], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = invoke("probe", "--home", str(tmp_path / "home"), *words)
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "home").exists()
