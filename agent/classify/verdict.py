"""Evidence becomes a failure: the candidates in their order, and what follows from the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from agent.classify.evidence import Hit, LogEvidence
from agent.classify.matcher import find
from agent.classify.rule import CONFIDENCE, SILENT, ExitFacts, Priority, Rule
from agent.classify.scanner import LogScanner
from agent.outcome import Failure
from agent.reasons import REASONS, Reason
from runners import Exit, LogLine, Phase

MAX_SUPPORTING = 5
_SIGNAL_EXIT_CODE = 128
"""A shell reports death by signal N as exit code 128 + N."""
_NO_LINE = 1 << 62
UNKNOWN_CURE = "Read the lines shown; when the cause is clear, add a rule with this log as its fixture."


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything a verdict rests on."""

    log: LogEvidence
    end: Exit
    phase: Phase
    """The last phase that the launch reached."""
    is_phase_known: bool = True
    stacks: bytes = b""
    """Stacks of a launch that went silent, as far as they were taken."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Parameter by environment variable or by option (`--tp-size`), from the search space."""


@cache
def scanner(rules: tuple[Rule, ...]) -> LogScanner:
    """Return the scanner for these rules; the patterns are prepared once."""
    return LogScanner(rules)


def candidates(case: Case, rules: Iterable[Rule]) -> list[Hit]:
    """Return what may explain the failure, best first; what the launch survived counts only where nothing else does."""
    lineless = [Hit(rule) for rule in rules if not rule.any_of]
    for lines in (case.log.hits, case.log.survived):
        signals = _signals(case.end, lines)
        hits = sorted((hit for hit in (*lines, *lineless) if _applies(hit.rule, case, signals)), key=_rank)
        if any(hit.line for hit in hits):
            return hits
    return hits


def failure_of(case: Case, rules: Iterable[Rule]) -> Failure:
    """Return why the launch failed; that it failed is taken for granted."""
    hits = candidates(case, rules)
    if not hits:
        return unknown(case)
    if hits[0].rule.priority is Priority.MODELLED:
        return _modelled(case, hits)
    return _failure(case, hits, hits[0])


def _modelled(case: Case, hits: list[Hit]) -> Failure:
    """The model says the reason; the first real line of that reason says the rest, as it would on a real node."""
    said = hits[0]
    told = next((hit for hit in hits[1:] if hit.rule.reason is said.rule.reason), said)
    failure = _failure(case, [told, *(hit for hit in hits[1:] if hit is not told)], told)
    decisive = told.line if told is not said and told.line else next(iter(case.log.telling), said.line)
    blames = _blames(said, case.names)
    if not blames and not (said.groups and "stated" in said.groups):
        blames = failure.blames
    return failure.model_copy(
        update={"decisive": decisive, "blames": blames, "confidence": CONFIDENCE[Priority.MODELLED]}
    )


def _failure(case: Case, hits: list[Hit], winner: Hit) -> Failure:
    reason = winner.rule.reason
    decisive = winner.line or _last_words(case)
    return Failure(
        reason=reason,
        rule=winner.rule.code,
        confidence=0.0 if reason is Reason.UNKNOWN else CONFIDENCE[winner.rule.priority],
        phase=case.phase,
        decisive=decisive,
        supporting=_supporting(decisive, hits, case.log),
        blames=_blames(winner, case.names),
        policy=winner.rule.policy,
        cure=_cure(winner),
        other_reasons=_other_reasons(reason, hits),
        depends_on=winner.rule.depends_on,
    )


def unknown(case: Case) -> Failure:
    """Return a failure that no rule knows, with the most informative lines."""
    telling = case.log.telling
    return Failure(
        reason=Reason.UNKNOWN,
        rule="none",
        confidence=0.0,
        phase=case.phase,
        decisive=telling[0] if telling else None,
        supporting=tuple(sorted(telling[1 : 1 + MAX_SUPPORTING], key=lambda line: line.number)),
        policy=REASONS[Reason.UNKNOWN].policy,
        cure=UNKNOWN_CURE,
    )


def _last_words(case: Case) -> LogLine | None:
    """The last line of a launch that went silent: it says where."""
    return case.log.last_line if case.end.cause in SILENT else None


def _other_reasons(reason: Reason, hits: Iterable[Hit]) -> tuple[Reason, ...]:
    """The further candidates, best first; that other ranks noticed a failure makes none."""
    roots = (hit.rule.reason for hit in hits if hit.rule.priority is not Priority.FOLLOW_UP)
    return tuple(dict.fromkeys(other for other in roots if other is not reason))


def _rank(hit: Hit) -> tuple[int, int, int, str]:
    """Sort key, best first: nearest to the root, then earliest, then the rule that asks for most."""
    number = hit.number if hit.line else _NO_LINE
    return -hit.rule.priority, number, -hit.rule.num_constraints, hit.rule.code


def _applies(rule: Rule, case: Case, signals: frozenset[int]) -> bool:
    if rule.phases and (case.phase not in rule.phases or not case.is_phase_known):
        return False
    line = case.log.phase_line
    if rule.last_words and not (line and any(find(each, line.text.encode()) for each in rule.last_words)):
        return False
    if rule.stacks and not any(find(each, case.stacks) for each in rule.stacks):
        return False
    return rule.exit_facts is None or _holds(rule.exit_facts, case, signals)


def _holds(facts: ExitFacts, case: Case, signals: frozenset[int]) -> bool:
    return (
        (not facts.signals or not signals.isdisjoint(facts.signals))
        and (not facts.codes or case.end.code in facts.codes)
        and (not facts.causes or case.end.cause in facts.causes)
    )


def _signals(end: Exit, hits: Iterable[Hit]) -> frozenset[int]:
    """Signals that ended a process and that nobody here sent: of the leader, and of ranks as the log reports them."""
    reported = {int(hit.groups["signal"]) for hit in hits if hit.groups and "signal" in hit.groups}
    if end.requested:
        return frozenset(reported)
    own = {end.signal} if end.signal is not None else set()
    by_code = {end.code - _SIGNAL_EXIT_CODE} if end.code is not None and end.code > _SIGNAL_EXIT_CODE else set()
    return frozenset(reported | own | by_code)


def _blames(winner: Hit, names: Mapping[str, str]) -> tuple[str, ...]:
    """Parameters that the line names, else those the rule names."""
    groups = winner.groups or {}
    named = [names[text] for group, text in groups.items() if group.startswith("env") and text in names]
    options = [_parameter(text, names) for group, text in groups.items() if group.startswith("option")]
    return tuple(dict.fromkeys(named + options)) or winner.rule.blames


def _parameter(option: str, names: Mapping[str, str]) -> str:
    """The space's name for an option, however the line spells it; without one, the option in the spelling of spaces."""
    bare = option.lstrip("-").replace("-", "_")
    return names.get("--" + bare.replace("_", "-"), bare)


def _cure(winner: Hit) -> str:
    cure = winner.rule.cure
    for group, text in (winner.groups or {}).items():
        cure = cure.replace(f"{{{group}}}", text)
    return cure


def _supporting(decisive: LogLine | None, hits: Iterable[Hit], log: LogEvidence) -> tuple[LogLine, ...]:
    """Up to MAX_SUPPORTING other lines, in the order of the log: further evidence first, then telling ones."""
    candidates = [hit.line for hit in hits if hit.line is not None] + list(log.telling)
    candidates += [log.phase_line] if log.phase_line else []
    number = decisive.number if decisive else 0
    by_number = {line.number: line for line in reversed(candidates) if line.number != number}
    best_first = list(dict.fromkeys(line.number for line in candidates if line.number in by_number))
    return tuple(by_number[number] for number in sorted(best_first[:MAX_SUPPORTING]))
