"""The ranks of one probe, forked ahead of their turn: they import the engine's package, set up, and wait for a word.

An engine takes 10 to 20 s to import (SGLang 0.5.16), and its import touches CUDA, after which a process can fork no
rank that uses a GPU. So each rank imports for itself, in its probe's own environment, while other probes run; and what
its all-reduce compiles (56 s for SGLang's custom one, the first time on a machine) is compiled meanwhile as well.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from pathlib import Path

from .launcher import RankExit, RankGroup
from .package_collectives import import_packages
from .phases import PhaseLog
from .probe_plan import ProbePlan
from .probe_rank import run_probe_rank
from .process_group import Rendezvous


class ProbeRanks:
    """The forked ranks of one probe. ``end`` must be called, whatever happened."""

    def __init__(self, plan: ProbePlan, environment: dict[str, str], log: Path) -> None:
        self._plan, self._environment, self._log = plan, environment, log
        self._rendezvous = Rendezvous.create()
        self._is_open = True
        self._word, self._told = os.pipe()
        self._answer, self._answering = os.pipe()
        self._ready, self._getting_ready = os.pipe()
        self._not_ready = plan.tp if plan.packages else 0
        self._group = RankGroup()
        log.write_bytes(b"")
        try:
            for rank in range(plan.tp):
                self._group.fork(rank, self._live)
        except BaseException:
            self.end()
            raise
        finally:
            os.close(self._word)
            os.close(self._answering)
            os.close(self._getting_ready)

    @property
    def are_ready(self) -> bool:
        """Whether a word finds every rank at work at once, with all it needs; or some of them are gone."""
        while self._not_ready > 0 and select.select([self._ready], [], [], 0)[0]:
            arrived = len(os.read(self._ready, self._not_ready))
            self._not_ready = self._not_ready - arrived if arrived else 0
        return self._not_ready == 0 or self._group.has_lost_one

    def run(self, timeout_s: float) -> tuple[list[RankExit] | None, bytes]:
        """Let them probe; return how they ended (None when the time was up), and what rank 0 found, as JSON."""
        self._close_told(b"." * self._plan.tp)
        exits = self._group.exits(timeout_s)
        self._group.end()
        with os.fdopen(self._answer, "rb") as pipe:
            self._answer = -1
            return exits, pipe.read()

    def end(self) -> None:
        """End those that still run and give everything back."""
        self._group.end()
        self._close_told()
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1
        if self._is_open:
            os.close(self._ready)
            self._rendezvous.close()
            self._is_open = False

    def _close_told(self, word: bytes = b"") -> None:
        if self._told >= 0:
            try:
                with suppress(BrokenPipeError):  # all of them died before, which their exits say
                    os.write(self._told, word)
            finally:
                os.close(self._told)
                self._told = -1

    def _live(self, rank: int) -> None:
        """A rank's whole life; one whose server is gone gets no word and ends."""
        os.close(self._told)
        os.environ.update(self._environment)
        redirect_output(self._log)
        log = PhaseLog(rank, time.monotonic())
        log.phase("spawn")
        import_packages(self._plan.packages)
        run_probe_rank(self._plan, self._rendezvous, rank, log, self._answering, self._is_our_turn)

    def _is_our_turn(self) -> bool:
        """Say that this rank is ready and wait for the word; False where the server is gone."""
        os.write(self._getting_ready, b".")
        os.close(self._getting_ready)
        return bool(os.read(self._word, 1))


def redirect_output(path: Path) -> None:
    """Append this process's standard output and error to a file, those of its C++ libraries included."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
