"""Something of Ray dies while the agent joins it, and Ray ends the agent's process: what to do is said all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import ENGINE, SYNTHETIC, agent, start_python

KILLED = """
import os, signal
import ray._private.worker as worker

real = worker.connect

def connect(node, *args, **options):
    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    return real(node, *args, **options)

worker.connect = connect
"""
"""The raylet dies after it was started and before anybody has registered with it."""
ENDED = """
import os
import ray

ray.init = lambda **options: os._exit(1)
"""
"""What Ray's library does when the raylet dies while it registers, too fast for anybody to step in."""
SEARCH = f"""
import os, sys
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="t" * 64)  # read once, when Ray is imported
{{}}
from agent.cli.main import main
words = ["--name", "study", "--engine", "{ENGINE}", {", ".join(map(repr, SYNTHETIC))}, "--budget", "2"]
main(["search", *words, "--home", sys.argv[1]])
"""


@pytest.mark.parametrize(
    "death", [pytest.param(KILLED, marks=pytest.mark.slow, id="killed"), pytest.param(ENDED, id="ended")]
)
def test_what_ray_ends_without_a_word_of_ours_says_what_to_do(tmp_path: Path, death: str) -> None:
    """Its library holds Python's lock until it ends the process: the watchdog says it, once."""
    ended = start_python(SEARCH.format(death), tmp_path).ended
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("Error: the agent ended while Ray started") == 1, ended.stderr
    assert f"go on with `agent resume study --home {tmp_path}`" in ended.stderr
    assert agent("status", "study", home=tmp_path).returncode == 0
