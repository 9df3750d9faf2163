"""Anybody's log, without a record: did the launch fail at all, and why?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from agent.classify.evidence import LogEvidence
from agent.classify.log_stream import ByteSource, stream_blocks
from agent.classify.registry import RULES
from agent.classify.rule import Priority, Rule
from agent.classify.verdict import Case, candidates, failure_of, scanner, unknown
from agent.outcome import Failure
from runners import Exit, Phase

_STARTED = (Phase.READY, Phase.SERVE)
_MAX_SIGNAL = 64


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a log says about a launch."""

    failure: Failure | None
    """Why it failed; None where it shows no failure."""
    phase: Phase
    """How far it came."""
    note: str


def diagnose(
    source: ByteSource,
    *,
    exit_code: int | None = None,
    max_bytes: int | None = None,
    names: Mapping[str, str] | None = None,
    rules: tuple[Rule, ...] = RULES,
) -> Diagnosis:
    """Return what the log says.

    Args:
        source: The log.
        exit_code: How the launch ended, negative or above 128 for a signal; None where nobody knows.
        max_bytes: Where to stop reading a log that grows.
        names: Parameter by environment variable or option, from a search space.
        rules: The rules to judge by.
    """
    rules = _unwatched(rules)
    log = scanner(rules).scan(stream_blocks(source, max_bytes))
    phase = log.phase or Phase.SPAWN
    case = Case(
        log=log,
        end=_exit(exit_code, log),
        phase=phase,
        is_phase_known=phase is not Phase.SPAWN,
        names=dict(names or {}),
    )
    if log.last_line is None:
        return Diagnosis(unknown(case), phase, "the log is empty")
    if _has_evidence(case, rules) or exit_code not in (None, 0):
        return Diagnosis(failure_of(case, rules), phase, "")
    if log.is_ready or phase in _STARTED:
        return Diagnosis(None, phase, "the launch became ready, and nothing after that is a failure")
    if exit_code == 0 and log.phase is None:
        return Diagnosis(None, phase, "exit code 0, and nothing in the log is a failure")
    if log.phase is None:
        return Diagnosis(unknown(case), phase, "nothing in the log is known as a failure, or as a launch of an engine")
    return Diagnosis(failure_of(case, rules), phase, _unfinished(exit_code))


@cache
def _unwatched(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules without those that need somebody who watched: here, whoever ended the launch may have meant it."""
    return tuple(rule for rule in rules if not rule.needs_watch)


def _unfinished(exit_code: int | None) -> str:
    if exit_code == 0:
        return "the launch ended before it was ready"
    return "the log ends before the launch was ready and shows no error: it hung there, or is still starting"


def _has_evidence(case: Case, rules: tuple[Rule, ...]) -> bool:
    """True when a line after the launch was ready, or any line of a launch that never was, is evidence of a failure."""
    is_failed = case.end.code not in (None, 0) or case.end.signal is not None
    lines = {hit.number for hit in case.log.hits} if case.log.is_ready and not is_failed else None
    hits = (hit for hit in candidates(case, rules) if hit.line and hit.rule.priority > Priority.EXIT)
    return any(lines is None or hit.number in lines for hit in hits)


def _exit(exit_code: int | None, log: LogEvidence) -> Exit:
    if exit_code is None:
        is_over = log.is_ready or bool(log.hits) or log.phase is None
        return Exit(cause="exited" if is_over else "unfinished")
    if -_MAX_SIGNAL <= exit_code < 0:
        return Exit(signal=-exit_code)
    return Exit(code=exit_code)
