"""A record becomes an outcome: measured, failed with a reason, or interrupted.

Pure but for reading the record's log. Exit facts are evidence and never a verdict of their own: exit code 0 is not
success, and signal 9 is not "out of memory".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from agent.classify.evidence import Hit, LogEvidence, LogScanner
from agent.classify.log_stream import stream_lines
from agent.classify.registry import RULES
from agent.classify.rule import CONFIDENCE, Priority, Rule
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.reasons import REASONS, Reason
from runners import Exit, LogLine, Phase, RunRecord

MAX_SUPPORTING = 5
_INTERRUPTED_CAUSES = ("cancelled", "lost")
_SIGNAL_EXIT_CODE = 128
"""A shell reports death by signal N as exit code 128 + N."""


def classify(
    record: RunRecord, *, env_names: Mapping[str, str] | None = None, rules: tuple[Rule, ...] = RULES
) -> Outcome:
    """Return what the record means.

    Args:
        record: The evidence; leftovers do not matter here.
        env_names: Parameter name by environment variable (`NCCL_ALGO` → `nccl_algo`), from the search space.
        rules: The rules to judge by.
    """
    if record.exit.cause in _INTERRUPTED_CAUSES:
        return Outcome(kind=OutcomeKind.INTERRUPTED, note=f"the launch was {record.exit.cause}; it says nothing")
    value = _objective(record) if _ended_well(record) else None
    if value is not None:
        return Outcome(kind=OutcomeKind.MEASURED, value=value, note=_stop_note(record))
    return Outcome(kind=OutcomeKind.FAILED, failure=_failure(record, dict(env_names or {}), rules))


def _ended_well(record: RunRecord) -> bool:
    """True when the launch came to the end of its work; being slow to stop takes nothing from the figures."""
    is_stuck_in_stop = record.phase is Phase.STOP and record.exit.cause in ("deadline", "no_progress")
    return record.exit.cause == "served" or is_stuck_in_stop or _exited_with_0(record.exit)


def _exited_with_0(end: Exit) -> bool:
    return end.cause == "exited" and end.code == 0


def _stop_note(record: RunRecord) -> str:
    is_late = record.exit.cause in ("deadline", "no_progress")
    return "measured, but the engine did not stop by itself" if is_late else ""


def _objective(record: RunRecord) -> float | None:
    """The record's figure, or None where it has none that can be used."""
    if record.probe is not None:
        figures: tuple[float, ...] = (record.probe.pass_us,)
    elif record.measurement is not None:
        figures = tuple(level.output_tok_per_s for level in record.measurement.levels)
    else:
        figures = ()
    if not figures or not all(math.isfinite(figure) and figure > 0 for figure in figures):
        return None
    return math.exp(math.fsum(math.log(figure) for figure in figures) / len(figures))


def _failure(record: RunRecord, env_names: Mapping[str, str], rules: tuple[Rule, ...]) -> Failure:
    log = _read_log(record, rules)
    signals = _signals(record.exit, log.hits)
    lineless = (Hit(rule) for rule in rules if not rule.any_of)
    hits = sorted((hit for hit in (*log.hits, *lineless) if _applies(hit.rule, record, signals)), key=_rank)
    if not hits:
        return _unknown(record, log.telling)
    winner = hits[0]
    reason = winner.rule.reason
    return Failure(
        reason=reason,
        rule=winner.rule.code,
        confidence=0.0 if reason is Reason.UNKNOWN else CONFIDENCE[winner.rule.priority],
        phase=record.phase,
        decisive=winner.line,
        supporting=_supporting(winner, hits, log.telling),
        blames=_blames(winner, env_names),
        policy=REASONS[reason].policy,
        cure=_cure(winner),
        other_reasons=_other_reasons(reason, hits),
    )


def _other_reasons(reason: Reason, hits: Iterable[Hit]) -> tuple[Reason, ...]:
    """The further candidates, best first; that other ranks noticed a failure makes none."""
    roots = (hit.rule.reason for hit in hits if hit.rule.priority is not Priority.FOLLOW_UP)
    return tuple(dict.fromkeys(other for other in roots if other is not reason))


def _read_log(record: RunRecord, rules: tuple[Rule, ...]) -> LogEvidence:
    """Scan the log; a record without one, or whose file is gone, is judged by its exit facts."""
    path = Path(record.log_path) if record.log_path else None
    return _scanner(rules).scan(stream_lines(path)) if path and path.is_file() else LogEvidence()


@cache
def _scanner(rules: tuple[Rule, ...]) -> LogScanner:
    return LogScanner(rules)


def _rank(hit: Hit) -> tuple[int, int, int, str]:
    """Sort key, best first: nearest to the root, then earliest, then the rule that asks for most."""
    return -hit.rule.priority, hit.number, -hit.rule.num_constraints, hit.rule.code


def _applies(rule: Rule, record: RunRecord, signals: frozenset[int]) -> bool:
    if rule.phases and record.phase not in rule.phases:
        return False
    facts = rule.exit_facts
    if facts is None:
        return True
    return (
        (not facts.signals or not signals.isdisjoint(facts.signals))
        and (not facts.codes or record.exit.code in facts.codes)
        and (not facts.causes or record.exit.cause in facts.causes)
    )


def _signals(end: Exit, hits: Iterable[Hit]) -> frozenset[int]:
    """Signals that ended a process and that nobody here sent: of the leader, and of ranks as the log reports them."""
    reported = {int(hit.groups["signal"]) for hit in hits if hit.groups and "signal" in hit.groups}
    if end.requested:
        return frozenset(reported)
    own = {end.signal} if end.signal is not None else set()
    by_code = {end.code - _SIGNAL_EXIT_CODE} if end.code is not None and end.code > _SIGNAL_EXIT_CODE else set()
    return frozenset(reported | own | by_code)


def _blames(winner: Hit, env_names: Mapping[str, str]) -> tuple[str, ...]:
    """Parameters that the line names, else those the rule names."""
    groups = winner.groups or {}
    named = [env_names[text] for group, text in groups.items() if group.startswith("env") and text in env_names]
    options = [groups["option"].lstrip("-").replace("-", "_")] if "option" in groups else []
    return tuple(dict.fromkeys(named + options)) or winner.rule.blames


def _cure(winner: Hit) -> str:
    cure = winner.rule.cure
    for group, text in (winner.groups or {}).items():
        cure = cure.replace(f"{{{group}}}", text)
    return cure


def _supporting(winner: Hit, hits: Iterable[Hit], telling: Iterable[LogLine]) -> tuple[LogLine, ...]:
    """Up to MAX_SUPPORTING other lines, in the order of the log: further evidence first, then telling ones."""
    candidates = [hit.line for hit in hits if hit.line is not None] + list(telling)
    by_number = {line.number: line for line in reversed(candidates) if line.number != winner.number}
    best_first = list(dict.fromkeys(line.number for line in candidates if line.number in by_number))
    return tuple(by_number[number] for number in sorted(best_first[:MAX_SUPPORTING]))


def _unknown(record: RunRecord, telling: tuple[LogLine, ...]) -> Failure:
    return Failure(
        reason=Reason.UNKNOWN,
        rule="none",
        confidence=0.0,
        phase=record.phase,
        decisive=telling[0] if telling else None,
        supporting=tuple(sorted(telling[1 : 1 + MAX_SUPPORTING], key=lambda line: line.number)),
        policy=REASONS[Reason.UNKNOWN].policy,
        cure="Read the lines shown; when the cause is clear, add a rule with this log as its fixture.",
    )
