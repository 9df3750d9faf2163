"""``python -m runners.torch_engine.probe``: a fork server that tries collective backends, one after the other.

It imports torch once and never touches CUDA; each probe runs in freshly forked ranks with its own environment, so
nothing of one probe reaches the next. One probe alone: ``python -m runners.torch_engine.probe -- --tp 2 --allreduce
gloo``. Under a Python that has torch but none of our packages: ``python runners/torch_engine/standalone.py``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cli import parse_config
from .config import ConfigError
from .launcher import Stopped, stop_signals
from .phases import last_phase
from .probe_plan import ProbePlan
from .probe_ranks import ProbeRanks

ERROR_LINES = 40
"""Lines of the log's end that a failed probe's result carries."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One line of the request file."""

    id: str
    log: Path
    """Where the ranks' output goes."""
    argv: list[str] = field(default_factory=list)
    """Flags of the engine, where there is no plan."""
    plan: dict[str, Any] | None = None
    """What to exchange, said outright: the fields of ``ProbePlan``."""
    sizes: list[int] = field(default_factory=list)
    """Bytes of the messages, in the place of those of the flags' levels."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment of this probe's ranks, on top of the server's own."""
    timeout_s: float = 20.0

    @classmethod
    def from_line(cls, line: str) -> ProbeRequest:
        """Parse one JSON line. Raises ``ConfigError`` when it is no request."""
        try:
            values = json.loads(line)
            return cls(**values | {"log": Path(values["log"])})
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"not a probe request: {line.strip()!r} ({error})") from error

    def resolve(self) -> ProbePlan:
        """What it asks for. Raises ``ConfigError`` for flags or a plan that no machine could run."""
        if self.plan is not None:
            return ProbePlan.of_json(self.plan)
        return ProbePlan.of_config(parse_config(self.argv), self.sizes)

    @property
    def packages(self) -> list[str]:
        """The collectives of engines' packages that it may call."""
        return [name for name in (self.plan or {}).get("chain", ()) if "." in name]


class Probe:
    """One request with its ranks, which `begin` may fork long before their turn. ``end`` must be called."""

    def __init__(self, request: ProbeRequest) -> None:
        self.request = request
        self._ranks: ProbeRanks | None = None

    def begin(self) -> ProbeRanks:
        """The ranks, forked if that was not done. Raises ``ConfigError`` for flags or a plan that nothing could run."""
        if self._ranks is None:
            self._ranks = ProbeRanks(self.request.resolve(), self.request.env, self.request.log)
        return self._ranks

    @property
    def is_ready(self) -> bool:
        """Whether it needs no import that is still to come."""
        return not self.request.packages or (self._ranks is not None and self._ranks.are_ready)

    def run(self) -> dict[str, Any]:
        """Run the probe to its end and return its result line; never raises for what the backend did."""
        request, started = self.request, time.monotonic()
        try:
            ranks = self.begin()
        except ConfigError as error:
            request.log.write_text(f"error: {error}\n")
            return _result(request, started, exit_code=2)
        exits, answer = ranks.run(request.timeout_s)
        if exits is None:
            return _result(request, started, timed_out=True)
        failures = [rank_exit for rank_exit in exits if not rank_exit.is_clean]
        if failures:
            with request.log.open("a") as log:
                log.writelines(f"{failure}\n" for failure in failures)
            return _result(request, started, exit_code=failures[0].exit_code, signal=failures[0].signal)
        findings: dict[str, Any] = json.loads(answer)
        is_probed = "not_probed" not in findings
        return _result(request, started, exit_code=0) | findings | {"ok": is_probed, "error": None}

    def end(self) -> None:
        """Leave nothing running."""
        if self._ranks is not None:
            self._ranks.end()


def _result(
    request: ProbeRequest,
    started: float,
    exit_code: int | None = None,
    signal: int | None = None,
    timed_out: bool = False,
) -> dict[str, Any]:
    """A failed probe's result; a passed one overwrites what it found."""
    log = request.log.read_bytes()
    return {
        "id": request.id,
        "ok": False,
        "calls": [],
        "calls_per_pass": None,
        "pass_us": None,
        "max_relative_error": None,
        "collective": None,
        "replaced": [],
        "software": None,
        "not_probed": None,
        "phase": last_phase(log),
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": timed_out,
        "error": "\n".join(log.decode(errors="replace").splitlines()[-ERROR_LINES:]),
        "seconds": round(time.monotonic() - started, 3),
    }


def serve_probes(lines: Iterable[str], results: Path, ahead: int | None = None) -> None:
    """Run the request of each line and append its result, durably, before the next one starts.

    Those that call an engine's package wait until their ranks have imported it, while others run; otherwise the order
    is that of the lines. Requests that have a result already are left out.

    Args:
        ahead: How many probes may import at the same time, ahead of their turn; by default as many as a quarter of the
            cores carries, since what is timed meanwhile must not wait for a core.
    """
    # Symmetric memory loads this at its first use (torch 2.13): 0.7 s that every such probe would pay.
    importlib.import_module("torch.fx.experimental.symbolic_shapes")
    requests = [ProbeRequest.from_line(line) for line in lines if line.strip()]
    answered = _answered(results)
    probes = [Probe(request) for request in requests if request.id not in answered]
    left = list(probes)
    try:
        with results.open("a") as file:
            while left:
                _begin_ahead(left, ahead)
                probe = next((each for each in left if each.is_ready), left[0])
                left.remove(probe)
                file.write(json.dumps(probe.run()) + "\n")
                file.flush()
                os.fsync(file.fileno())
                probe.end()
    finally:
        for probe in probes:
            probe.end()


def _begin_ahead(probes: Sequence[Probe], ahead: int | None) -> None:
    """Let the next of those that import an engine's package begin with it."""
    importing = [probe for probe in probes if probe.request.packages]
    if not importing:
        return
    cores = len(os.sched_getaffinity(0))
    number = cores // 4 // int((importing[0].request.plan or {}).get("tp", 1)) if ahead is None else ahead
    for probe in importing[:number]:
        with suppress(ConfigError):  # said when it is its turn
            probe.begin()


def _answered(results: Path) -> set[str]:
    if not results.exists():
        return set()
    lines = results.read_text().splitlines(keepends=True)
    return {json.loads(line)["id"] for line in lines if line.endswith("\n")}


def main(argv: Sequence[str]) -> int:
    """The command line; returns 0 when every request was answered (failed probes are answers), 2 for bad requests."""
    parser = argparse.ArgumentParser(prog="python -m runners.torch_engine.probe", description=__doc__)
    parser.add_argument("--requests", type=Path, help="JSON lines: id, argv, env, log, timeout_s (seconds)")
    parser.add_argument("--results", type=Path, help="JSON lines are appended here, one for each request")
    parser.add_argument("--ahead", type=int, help="probes that import an engine's package ahead of their turn")
    parser.add_argument("--log", type=Path, default=Path("probe.log"), help="log of a single probe")
    parser.add_argument("--timeout-s", type=float, default=20.0, help="time limit of a single probe, in seconds")
    parser.add_argument("flags", nargs="*", help="engine flags of a single probe, after --")
    arguments = parser.parse_args(argv)
    if arguments.requests is not None and arguments.results is None:
        parser.error("--requests needs --results")
    with stop_signals():
        try:
            _answer(arguments)
        except Stopped as stopped:
            return 128 + stopped.signal_number
        except ConfigError as error:
            print(f"{parser.prog}: error: {error}", file=sys.stderr)
            return 2
    return 0


def _answer(arguments: argparse.Namespace) -> None:
    if arguments.requests is None:
        alone = ProbeRequest("alone", arguments.log, arguments.flags, timeout_s=arguments.timeout_s)
        probe = Probe(alone)
        try:
            print(json.dumps(probe.run()))
        finally:
            probe.end()
        return
    with arguments.requests.open() as lines:
        serve_probes(lines, arguments.results, arguments.ahead)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
