"""Which signals end a search, and which were meant to be outlived."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator

import pytest
from rich.console import Console

from agent.process_end import signals


@pytest.fixture(autouse=True)
def _hang_up_restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_first_signal_is_noted(number: signal.Signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with signals(Console(file=io.StringIO())) as interruption:
        os.kill(os.getpid(), number)
        assert str(interruption) == number.name


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals(Console(file=io.StringIO())) as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not interruption
