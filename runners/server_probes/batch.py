"""A batch of probes: orders go to a fork server in a file, answers come back in another, and become records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runners.contract import (
    Command,
    Deadlines,
    EffectProof,
    Exit,
    LogLine,
    Phase,
    ProbedCall,
    ProbeMeasurement,
    RunRecord,
    TrialRequest,
)
from runners.lifecycle import LaunchPlan, launch
from runners.torch_engine.phases import last_phase

START_S = 30.0
"""What a probe server may need before its first probe, beside the time limits of the probes."""
COMPILING = "its kernels were still being compiled after {seconds:.0f} s; what is compiled is kept for the next probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOrder:
    """One probe, as the probe server is told, or why it is not run."""

    request: TrialRequest
    content: Mapping[str, object] = field(default_factory=dict)
    """`argv`, `plan`, `sizes`: see the page of the torch engine."""
    variables: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 45.0
    not_probed: str = ""
    compiles: bool = False
    """Whether kernels may be compiled at the first call, which takes minutes the first time on a node."""
    note: str = ""
    """What is left out, for the reader."""
    effects: Callable[[Mapping[str, Any]], Iterable[EffectProof]] = lambda answer: ()
    """Answer → what it proves about the parameters of the assignment."""


def run_probe_batch(orders: Sequence[ProbeOrder], server: Command) -> list[RunRecord]:
    """Run the probes one after the other from one fork server; return a record for each, in order.

    Args:
        orders: The probes, of trials that share a cookie.
        server: The command of the probe server, without the files.
    """
    wanted = [order for order in orders if not order.not_probed]
    answers: dict[str, Mapping[str, Any]] = {}
    lost: RunRecord | None = None
    if wanted:
        folder = Path(orders[0].request.artifact_dir)
        files = (folder / "probes.jsonl", folder / "probe-results.jsonl")
        for order in orders:
            Path(order.request.artifact_dir).mkdir(parents=True, exist_ok=True)
        files[0].write_text("".join(_line(order) for order in wanted), encoding="utf-8")
        lost = _serve(orders[0].request, wanted, server, files)
        answers = {str(answer["id"]): answer for answer in _read_lines(files[1])}
    return [_record(order, answers.get(str(order.request.trial)), lost) for order in orders]


def _serve(request: TrialRequest, wanted: Sequence[ProbeOrder], server: Command, files: tuple[Path, Path]) -> RunRecord:
    limit = START_S + sum(order.timeout_s for order in wanted)
    limit = min(limit, request.deadlines.batch_s or limit)
    deadlines = Deadlines(phase_default_s=limit, no_progress_s=limit)
    argv = (*server.argv, "--requests", str(files[0]), "--results", str(files[1]))
    return launch(request.model_copy(update={"deadlines": deadlines}), Command(argv=argv, env=server.env), LaunchPlan())


def _line(order: ProbeOrder) -> str:
    common = {
        "id": str(order.request.trial),
        "env": dict(order.variables),
        "log": str(_log_of(order.request)),
        "timeout_s": order.timeout_s,
    }
    return json.dumps({**common, **order.content}) + "\n"


def _log_of(request: TrialRequest) -> Path:
    """Return the log of one probe, beside that of the server, which is written into the first probe's folder."""
    return Path(request.artifact_dir) / "probe.log"


def _was_compiling(request: TrialRequest) -> bool:
    log = _log_of(request)
    return log.exists() and last_phase(log.read_bytes()) == Phase.COMPILE.value


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines: a probe server that was killed may have left half of one."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _record(order: ProbeOrder, answer: Mapping[str, Any] | None, server: RunRecord | None) -> RunRecord:
    """Return one probe's evidence; a probe that the server never answered was lost, and blames nothing."""
    if order.not_probed or server is None:
        return RunRecord(exit=Exit(code=0), phase=Phase.RESOLVE, wall_s=0.0, not_probed=order.not_probed)
    common = {"argv": server.argv, "env": dict(order.variables), "leftovers": server.leftovers, "node": server.node}
    if answer is None and server.exit.cause == "deadline" and order.compiles and _was_compiling(order.request):
        said = COMPILING.format(seconds=server.wall_s)
        return RunRecord(exit=Exit(), phase=Phase.COMPILE, wall_s=server.wall_s, not_probed=said, **common)
    if answer is None:
        exit_ = Exit(code=server.exit.code, signal=server.exit.signal, cause="lost")
        log = {"log_path": server.log_path, "excerpt": server.excerpt}
        return RunRecord(exit=exit_, phase=server.phase, wall_s=server.wall_s, **log, **common)
    log_path, phase = _log_of(order.request), Phase(answer.get("phase") or Phase.SPAWN)
    lines = (answer.get("error") or "").splitlines()
    is_late = bool(answer.get("timed_out"))
    not_probed = answer.get("not_probed")
    if is_late and order.compiles and phase is Phase.COMPILE:
        not_probed = COMPILING.format(seconds=order.timeout_s)
    return RunRecord(
        exit=Exit(
            code=answer.get("exit_code"),
            signal=answer.get("signal"),
            requested=is_late,
            cause="deadline" if is_late else "exited",
        ),
        phase=phase,
        wall_s=answer["seconds"],
        log_path=str(log_path) if log_path.exists() else None,
        log_lines=len(lines),
        excerpt=tuple(LogLine(number=number, text=text) for number, text in enumerate(lines, start=1)),
        probe=_measurement(answer, order.note) if answer["ok"] else None,
        not_probed=not_probed,
        effects=tuple(order.effects(answer)) if answer["ok"] else (),
        **common,
    )


def _measurement(answer: Mapping[str, Any], note: str) -> ProbeMeasurement:
    names = ("op", "bytes", "mode", "us_p50", "us_p10", "us_p90", "by")
    said = "; ".join(dict.fromkeys(filter(None, (*(call["by"] for call in answer["calls"]), note))))
    return ProbeMeasurement(
        pass_us=answer["pass_us"],
        calls_per_pass=answer["calls_per_pass"],
        calls=tuple(ProbedCall(**{name: call[name] for name in names}) for call in answer["calls"]),
        backend=said,
        software=answer.get("software") or "",
    )
