"""Which tests may run beside others, and the proof that they do not notice each other.

Most time of a whole run is waiting: for Ray, for servers, for engines. Tests that only compute run meanwhile in other
processes (pytest-xdist). All that start processes, listen, or look at the machine run in one process, one after the
other, in the order in which they stand: none of these ever runs beside another.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
COMPUTING = (
    "agent/classify",
    "agent/deadends",
    "agent/propose",
    "agent/report_page",
    "properties",
    "runners/replay",
    "search_spaces",
)
"""Folders of tests that compute and touch no more than a folder of their own."""
STARTING = ("search_spaces/test_node_generator.py",)
"""Files in them that start a process."""
OF_THE_MACHINE = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.kill",
        "os.killpg",
        "os.posix_spawn",
        "os.system",
        "signal.pthread_kill",
        "socket.bind",
        "socket.connect",
        "subprocess.Popen",
    }
)
"""Events of Python's audit that such a test must not cause. Source: Python 3.11, table of audit events."""


def computes(path: Path) -> bool:
    """Return whether the tests of a file only compute."""
    name = path.relative_to(TESTS).as_posix()
    return name.startswith(tuple(f"{each}/" for each in COMPUTING)) and name not in STARTING


def group_of(path: Path) -> str:
    """Return the name under which a file's tests are kept together: a computing file has a group of its own."""
    return path.relative_to(TESTS).as_posix() if computes(path) else "of the machine"


class Fence:
    """Stops a test that reaches for the machine where it may only compute."""

    def __init__(self) -> None:
        """Listen to what Python is about to do; an audit hook can never be taken away again."""
        self.is_up = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: object) -> None:
        if self.is_up and event in OF_THE_MACHINE:
            self.is_up = False  # what pytest does with the error is no longer the test's
            raise AssertionError(
                f"{event} in a folder of tests that only compute: they run beside others (tests/support/alone.py)"
            )
