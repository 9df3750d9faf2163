"""How an agent leaves before its work is done: by a signal, or because a library hangs that nothing else ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from agent.errors import INTERRUPTED_EXIT_CODE, NodeUnusableError
from agent.interruption import Interruption
from runners.cookies import SESSION_VARIABLE, kill_processes

if TYPE_CHECKING:
    from rich.console import Console

LEAVE_S = 2.0
"""How long a process that leaves at once may take to kill what it started."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave_without(what: str, again: str, console: Console) -> None:
    """End this process, whose main thread hangs in a call of Ray's; the watchdog kills what is left of it."""
    message = f"Error: Ray's {what}. Nothing is lost: go on with `{again}`."
    leave(f"{message} If it happens again, see in `dmesg` what kills it.", NodeUnusableError.exit_code, console)


def leave(message: str, exit_code: int, console: Console) -> None:
    """End this process at once, whatever its threads are doing, and what it started: its watchdog may be dead."""
    try:
        with suppress(OSError):  # there may be nobody to tell it to
            console.show_cursor()
            sys.stderr.write(f"\n{message}\n")
            sys.stderr.flush()
        if (session := os.environ.get(SESSION_VARIABLE)) is not None:
            kill_processes(session, variable=SESSION_VARIABLE, bound_s=LEAVE_S)
    finally:
        os._exit(exit_code)


@contextmanager
def signals(console: Console) -> Iterator[Interruption]:
    """First signal: end cleanly and say how to resume. Second: leave; the watchdog kills what is left."""
    interruption = Interruption()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if interruption or interruption.is_starting:
            message = "leaving at once; whatever still runs is killed. Resume with: agent resume"
            leave(message, INTERRUPTED_EXIT_CODE, console)
        interruption.note(number)
        console.print("\nending what runs and cleaning up; once more to leave at once", style="yellow")

    before = {number: signal.signal(number, on_signal) for number in SIGNALS if not _is_wanted_to_outlive(number)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_wanted_to_outlive(number: int) -> bool:
    """Return whether the search was started with `nohup`: then a closed terminal is no reason to end."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
