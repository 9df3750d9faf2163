"""A record becomes an outcome: measured, failed with a reason, or interrupted.

Pure but for reading the record's log. Exit facts are evidence and never a verdict of their own: exit code 0 is not
success, and signal 9 is not "out of memory".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from agent.classify.evidence import LogEvidence
from agent.classify.log_stream import stream_blocks
from agent.classify.registry import RULES
from agent.classify.rule import SILENT, Rule
from agent.classify.verdict import Case, failure_of, scanner
from agent.outcome import Outcome, OutcomeKind
from runners import Exit, Phase, RunRecord, StoppedEarly

_MAX_STACK_BYTES = 1 << 20
_INTERRUPTED_CAUSES = ("cancelled", "lost")


def classify(
    record: RunRecord, *, env_names: Mapping[str, str] | None = None, rules: tuple[Rule, ...] = RULES
) -> Outcome:
    """Return what the record means.

    Args:
        record: The evidence; leftovers do not matter here.
        env_names: Parameter name by environment variable (`NCCL_ALGO` → `nccl_algo`) or option (`--tp-size` → `tp`),
            from the search space.
        rules: The rules to judge by.
    """
    if record.exit.cause in _INTERRUPTED_CAUSES:
        return Outcome(kind=OutcomeKind.INTERRUPTED, note=f"the launch was {record.exit.cause}; it says nothing")
    if record.measurement is not None and record.measurement.stopped is not None and _ended_well(record):
        return _slower(record.measurement.stopped)
    if record.not_probed is not None:
        return Outcome(kind=OutcomeKind.NOT_PROBED, note=record.not_probed)
    value = _objective(record) if _ended_well(record) else None
    if value is not None:
        return Outcome(kind=OutcomeKind.MEASURED, value=value, note=_stop_note(record))
    case = Case(
        log=_read_log(record, rules),
        end=record.exit,
        phase=record.phase,
        stacks=_read_stacks(record),
        names=dict(env_names or {}),
    )
    return Outcome(kind=OutcomeKind.FAILED, failure=failure_of(case, rules))


def _slower(stopped: StoppedEarly) -> Outcome:
    words = (
        f"stopped after {stopped.requests} requests at concurrency {stopped.concurrency}: at most "
        f"{stopped.ceiling:.1f} tok/s, below {stopped.below:.1f} it is clearly slower; {stopped.saved_s:.0f} s saved"
    )
    return Outcome(kind=OutcomeKind.SLOWER, value=stopped.estimate, note=words)


def _ended_well(record: RunRecord) -> bool:
    """True when the launch came to the end of its work; being slow to stop takes nothing from the figures."""
    is_stuck_in_stop = record.phase is Phase.STOP and record.exit.cause in SILENT
    return record.exit.cause == "served" or is_stuck_in_stop or _exited_with_0(record.exit)


def _exited_with_0(end: Exit) -> bool:
    return end.cause == "exited" and end.code == 0


def _stop_note(record: RunRecord) -> str:
    return "measured, but the engine did not stop by itself" if record.exit.cause in SILENT else ""


def _objective(record: RunRecord) -> float | None:
    """The record's figure, or None where it has none that can be used; its seconds at a rung that measures nothing."""
    if record.probe is not None:
        figures: tuple[float, ...] = (record.probe.pass_us,)
    elif record.measurement is not None:
        figures = tuple(level.output_tok_per_s for level in record.measurement.levels)
    else:
        figures = (record.wall_s,) if record.passed else ()
    if not figures or not all(math.isfinite(figure) and figure > 0 for figure in figures):
        return None
    return math.exp(math.fsum(math.log(figure) for figure in figures) / len(figures))


def _read_stacks(record: RunRecord) -> bytes:
    path = Path(record.stacks_path) if record.stacks_path else None
    if path is None or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_MAX_STACK_BYTES)


def _read_log(record: RunRecord, rules: tuple[Rule, ...]) -> LogEvidence:
    """Scan the log; a record without one, or whose file is gone, is judged by its exit facts."""
    path = Path(record.log_path) if record.log_path else None
    if path is None or not path.is_file():
        return LogEvidence()
    with path.open("rb") as file:
        return scanner(rules).scan(stream_blocks(file))
