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
import re
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cli import parse_config
from .config import ConfigError
from .launcher import RankExit, Stopped, run_ranks, stop_signals
from .package_collectives import import_ahead
from .phases import PhaseLog
from .probe_plan import ProbePlan
from .probe_rank import run_probe_rank
from .process_group import Rendezvous

ERROR_LINES = 40
"""Lines of the log's end that a failed probe's result carries."""

_PHASE = re.compile(rb"^\[torch_engine [0-9.]+\] rank=\d+ phase=(\w+)", re.MULTILINE)


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


def run_probe(request: ProbeRequest) -> dict[str, Any]:
    """Run one probe to its end and return its result line; never raises for what the backend did."""
    started = time.monotonic()
    request.log.write_bytes(b"")
    try:
        plan = request.resolve()
    except ConfigError as error:
        request.log.write_text(f"error: {error}\n")
        return _result(request, started, exit_code=2)
    with request.log.open("a") as log, redirect_stdout(log):
        PhaseLog(0, started).phase("spawn")
    exits, answer = _run_ranks(request, plan, started)
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


def _run_ranks(request: ProbeRequest, plan: ProbePlan, started: float) -> tuple[list[RankExit] | None, bytes]:
    rendezvous = Rendezvous.create()
    readable, writable = os.pipe()

    def run(rank: int) -> None:
        os.environ.update(request.env)
        redirect_output(request.log)
        run_probe_rank(plan, rendezvous, rank, PhaseLog(rank, started), writable)

    try:
        exits = run_ranks(plan.tp, run, request.timeout_s)
    finally:
        os.close(writable)
        rendezvous.close()
    with os.fdopen(readable, "rb") as pipe:
        return exits, pipe.read()


def redirect_output(path: Path) -> None:
    """Append this process's standard output and error to a file, those of its C++ libraries included."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _result(
    request: ProbeRequest,
    started: float,
    exit_code: int | None = None,
    signal: int | None = None,
    timed_out: bool = False,
) -> dict[str, Any]:
    """A failed probe's result; a passed one overwrites what it found."""
    log = request.log.read_bytes()
    phases = _PHASE.findall(log)
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
        "phase": phases[-1].decode() if phases else "resolve",
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": timed_out,
        "error": "\n".join(log.decode(errors="replace").splitlines()[-ERROR_LINES:]),
        "seconds": round(time.monotonic() - started, 3),
    }


def serve_probes(lines: Iterable[str], results: Path, *, may_import_ahead: bool = True) -> None:
    """Run the request of each line and append its result, durably, before the next one starts.

    Those that call an engine's package come last: its modules are imported once, before the first of them. Requests
    that have a result already are left out.
    """
    # Symmetric memory loads this at its first use (torch 2.13): 0.7 s that every such probe would pay.
    importlib.import_module("torch.fx.experimental.symbolic_shapes")
    requests = [ProbeRequest.from_line(line) for line in lines if line.strip()]
    answered = _answered(results)
    requests = sorted((each for each in requests if each.id not in answered), key=lambda each: bool(each.packages))
    with results.open("a") as file:
        for request in requests:
            if request.packages and may_import_ahead:
                _import_ahead(requests)
                may_import_ahead = False
            file.write(json.dumps(run_probe(request)) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _answered(results: Path) -> set[str]:
    if not results.exists():
        return set()
    lines = results.read_text().splitlines(keepends=True)
    return {json.loads(line)["id"] for line in lines if line.endswith("\n")}


def _import_ahead(requests: Iterable[ProbeRequest]) -> None:
    """Import the engines' modules for all ranks to come; where that touched CUDA, start anew and leave it to them."""
    names = dict.fromkeys(name for request in requests for name in request.packages)
    if not import_ahead(names):
        sys.stdout.flush()
        os.execv(sys.executable, [*sys.orig_argv, "--no-import-ahead"])  # noqa: S606 - the very same program


def main(argv: Sequence[str]) -> int:
    """The command line; returns 0 when every request was answered (failed probes are answers), 2 for bad requests."""
    parser = argparse.ArgumentParser(prog="python -m runners.torch_engine.probe", description=__doc__)
    parser.add_argument("--requests", type=Path, help="JSON lines: id, argv, env, log, timeout_s (seconds)")
    parser.add_argument("--results", type=Path, help="JSON lines are appended here, one for each request")
    parser.add_argument(
        "--no-import-ahead", action="store_true", help="import an engine's package in each rank anew, not once for all"
    )
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
        print(json.dumps(run_probe(alone)))
        return
    with arguments.requests.open() as lines:
        serve_probes(lines, arguments.results, may_import_ahead=not arguments.no_import_ahead)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
