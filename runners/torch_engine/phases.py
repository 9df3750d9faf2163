"""Log lines: where in its life a launch is, and the facts that prove what really ran."""

from __future__ import annotations

import re
import time

PHASES = ("spawn", "init_distributed", "load_weights", "alloc_kv", "capture_graphs", "warmup", "ready", "serve", "stop")
"""Phases in order; ``capture_graphs`` only with CUDA graphs."""

_LINE = re.compile(rb"^\[torch_engine [0-9.]+\] rank=\d+ phase=(\w+)", re.MULTILINE)


class PhaseLog:
    """Writes one flushed line a phase or fact: ``[torch_engine 1.234] rank=0 phase=warmup`` (seconds since the
    start)."""

    def __init__(self, rank: int, started: float) -> None:
        self._rank = rank
        self._started = started

    def phase(self, name: str) -> None:
        """Say that this launch enters a phase (rank 0 speaks for all)."""
        self._line(f"phase={name}")

    def fact(self, **values: object) -> None:
        """Say what really runs, as ``name=value`` pairs."""
        self._line(" ".join(f"{name}={str(value).replace(' ', '')}" for name, value in values.items()))

    def _line(self, text: str) -> None:
        if self._rank == 0:
            print(f"[torch_engine {time.monotonic() - self._started:.3f}] rank={self._rank} {text}", flush=True)


def last_phase(log: bytes) -> str:
    """Return the last phase that a log names; ``resolve`` where it names none."""
    phases = _LINE.findall(log)
    return phases[-1].decode() if phases else "resolve"
