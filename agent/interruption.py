"""Whether somebody wants the search to end: set by a signal, read between two steps."""

from __future__ import annotations

import signal


class Interruption:
    """Set by the first signal; read between two steps."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.is_starting = False
        """True while nothing was launched yet: then there is nothing to end cleanly."""

    def note(self, signal_number: int) -> None:
        """Remember that somebody wants the search to end."""
        self.signal_number = signal_number

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def __str__(self) -> str:
        return signal.Signals(self.signal_number).name if self.signal_number is not None else "not interrupted"
