"""Handlers of signals and of exceptions that outlive a library which puts its own in their place."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Put back what stood before: Ray leaves a handler of its own behind when it starts (seen on 2.60, for SIGTERM)."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def excepthook_kept() -> Iterator[None]:
    """Put back what tells of an exception that nobody caught.

    Ray's own, which comes with its import, tells the GCS first (seen on 2.60). Where that is dead, it waits until Ray
    ends the process: with exit code 1, and nobody learns of the exception.
    """
    before = sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = before
