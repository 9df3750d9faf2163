"""The session watchdog: an agent that dies takes everything it started with it, and a clean end kills nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.cookies import SESSION_VARIABLE, find_processes, kill_processes
from runners.processes import is_running, read_stat
from runners.session_watchdog import start_session_watchdog
from tests.support.waiting import wait_until

AGENT = """
import os, subprocess, sys, time
from runners.cookies import SESSION_VARIABLE
from runners.session_watchdog import start_session_watchdog

watchdog = start_session_watchdog(sys.argv[1])
os.environ[SESSION_VARIABLE] = sys.argv[1]
sleep = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"]
subprocess.Popen(sleep, start_new_session=True)
if os.fork() == 0:  # holds the pipe to the watchdog open after the agent's death
    time.sleep(600)
print(watchdog.pid, flush=True)
if sys.argv[2] == "close":
    watchdog.close()
    watchdog.close()
time.sleep(600 if sys.argv[2] == "stay" else 0)
"""


@pytest.fixture
def session() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    kill_processes(value, variable=SESSION_VARIABLE)


def start_agent(session: str, ending: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", AGENT, session, ending]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)


def watchdog_of(agent: subprocess.Popen[str]) -> int:
    assert agent.stdout is not None
    return int(agent.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_agent_takes_its_session_along(session: str, number: signal.Signals) -> None:
    with start_agent(session, "stay") as agent:
        watchdog = read_stat(watchdog_of(agent))
        assert watchdog is not None
        marked = wait_until(lambda: find_processes(session, variable=SESSION_VARIABLE))
        agent.send_signal(number)
        wait_until(lambda: not is_running(watchdog.key))
        assert not any(is_running(key) for key in marked)
        os.killpg(agent.pid, signal.SIGKILL)  # the forked child, which was never marked


def test_an_agent_that_only_ends_leaves_nothing_either(session: str) -> None:
    with start_agent(session, "leave") as agent:
        watchdog_of(agent)
        wait_until(lambda: agent.poll() is not None)
        wait_until(lambda: not find_processes(session, variable=SESSION_VARIABLE))
        os.killpg(agent.pid, signal.SIGKILL)


def test_a_dismissed_watchdog_kills_nothing(session: str) -> None:
    with start_agent(session, "close") as agent:
        watchdog = watchdog_of(agent)
        wait_until(lambda: agent.poll() is not None)
        assert read_stat(watchdog) is None
        assert len(find_processes(session, variable=SESSION_VARIABLE)) == 1
        os.killpg(agent.pid, signal.SIGKILL)


def test_close_may_be_called_when_the_watchdog_is_gone(session: str) -> None:
    watchdog = start_session_watchdog(session)
    os.kill(watchdog.pid, signal.SIGKILL)
    watchdog.close()


LAST_WORDS = """
import os, sys
from runners.session_watchdog import start_session_watchdog

watchdog = start_session_watchdog(sys.argv[1])
with watchdog.last_words("it ended from below"):
    if sys.argv[2] == "within":
        os._exit(1)
if sys.argv[2] == "dismissed":
    watchdog.close()
os._exit(1)
"""


@pytest.mark.parametrize(("ending", "said"), [("within", "it ended from below\n"), ("after", ""), ("dismissed", "")])
def test_the_watchdog_says_what_the_agent_cannot(session: str, ending: str, said: str) -> None:
    """Only for an end within the body; and it holds the agent's standard error no longer than it takes to say it."""
    command = [sys.executable, "-c", LAST_WORDS, session, ending]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, said)
