"""How the agent's process ends: what it started ends with it, signals end it cleanly, and it can leave at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import TYPE_CHECKING

from agent.errors import INTERRUPTED_EXIT_CODE
from agent.interruption import Interruption
from runners.cookies import KEEP_ENVIRON, SESSION_VARIABLE, kill_processes
from runners.session_watchdog import SessionWatchdog, start_session_watchdog

if TYPE_CHECKING:
    from rich.console import Console

LEAVE_S = 2.0
"""How long a process that leaves at once may take to kill what it started."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_watchdogs: list[SessionWatchdog] = []
"""Those of this process's sessions, the present one last."""


@contextmanager
def guarded(session_id: str) -> Iterator[None]:
    """Mark everything this process starts, and have it killed should this process die."""
    before = {name: os.environ.get(name) for name in (SESSION_VARIABLE, *KEEP_ENVIRON)}
    os.environ.update({SESSION_VARIABLE: session_id, **KEEP_ENVIRON})
    watchdog = start_session_watchdog(session_id)
    _watchdogs.append(watchdog)
    try:
        yield
    finally:
        _watchdogs.remove(watchdog)
        kill_processes(session_id, variable=SESSION_VARIABLE)  # what a start of Ray that was cut short left
        watchdog.close()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


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


def last_words(text: str) -> AbstractContextManager[None]:
    """Have the session's watchdog tell the user this much, should the process end within the body without a word."""
    return _watchdogs[-1].last_words(text) if _watchdogs else nullcontext()


def leave(message: str, exit_code: int, console: Console) -> None:
    """End this process at once, whatever its threads are doing, and what it started: its watchdog may be dead."""
    for watchdog in _watchdogs:
        watchdog.take_back()
    try:
        with suppress(OSError):  # there may be nobody to tell it to
            console.show_cursor()
            sys.stderr.write(f"\n{message}\n")
            sys.stderr.flush()
        if (session := os.environ.get(SESSION_VARIABLE)) is not None:
            kill_processes(session, variable=SESSION_VARIABLE, bound_s=LEAVE_S)
    finally:
        os._exit(exit_code)
