"""Where a launch is: phases recognised in its log, their times and deadlines, and a file for whoever looks on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runners.contract import Deadlines, LogLine, Phase

PhasePattern = tuple[str, Phase]
"""A regular expression and the phase that begins with a log line that matches it."""

_RANK = {phase: rank for rank, phase in enumerate(Phase)}


class PhaseTracker:
    """The phase of one launch. It only moves forward: the ranks of an engine print the same lines at different times.

    So what comes later but looks like an earlier phase (the weights of a draft model, say) counts to the later phase.
    """

    def __init__(
        self,
        path: Path,
        patterns: Sequence[PhasePattern],
        deadlines: Deadlines,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with `Phase.SPAWN`; changes of phase are appended to the JSON-lines file `path` as they happen."""
        self.phase = Phase.SPAWN
        self._patterns = [(re.compile(pattern), phase) for pattern, phase in patterns]
        self._deadlines = deadlines
        self._clock = clock
        self._entered = clock()
        self._seconds: dict[Phase, float] = {}
        self._is_frozen = False
        self._path = path
        self._path.write_text("", encoding="utf-8")
        self._note(None)

    @property
    def is_overdue(self) -> bool:
        """True when the phase takes longer than it may."""
        limit_s = self._deadlines.phase_s.get(self.phase, self._deadlines.phase_default_s)
        return self._clock() - self._entered > limit_s

    @property
    def phase_s(self) -> dict[Phase, float]:
        """Return the seconds spent in each phase that was entered, the present one included."""
        return self._seconds | {self.phase: self._clock() - self._entered}

    def see(self, line: LogLine) -> None:
        """Enter the furthest phase that begins with this line, if it lies ahead."""
        ahead = [(pattern, phase) for pattern, phase in self._patterns if not self.has_reached(phase)]
        reached = [phase for pattern, phase in ahead if pattern.search(line.text)]
        if reached:
            self.enter(max(reached, key=_RANK.__getitem__), line.number)

    def enter(self, phase: Phase, line_number: int | None = None) -> None:
        """Enter a phase that lies ahead; anything else changes nothing."""
        if self._is_frozen or self.has_reached(phase):
            return
        now = self._clock()
        self._seconds[self.phase] = now - self._entered
        self.phase, self._entered = phase, now
        self._note(line_number)

    def has_reached(self, phase: Phase) -> bool:
        """True when the launch is in this phase or past it."""
        return _RANK[phase] <= _RANK[self.phase]

    def freeze(self) -> None:
        """Stay in the present phase and count no more time: the launch is decided, what follows is our clean-up."""
        if not self._is_frozen:
            self._is_frozen = True
            frozen_at = self._clock()
            self._clock = lambda: frozen_at

    def _note(self, line_number: int | None) -> None:
        entry = {"phase": self.phase.value, "at": time.time(), "line": line_number}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
